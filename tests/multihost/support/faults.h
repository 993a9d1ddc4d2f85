// Jobs under random traffic to which something happens.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "multihost/support/fixture.h"

namespace tessera::multihost {

inline constexpr int kWarm = 24;  // rounds before something happens

inline Job::Body traffic(uint32_t seed) {
  return [seed](Communicator& comm, Board& board) {
    Traffic traffic;
    traffic.seed = seed;
    return run_traffic(comm, board, traffic);
  };
}

class Faults : public MultihostTest {
 protected:
  // Traffic is under way on `hosts`, one entry per rank.
  void start(const std::vector<int>& host_of, int timeout_ms, int rails = 1) {
    host_of_ = host_of;
    const int hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
    network_ = std::make_unique<Network>(hosts, rails);
    const auto seed = static_cast<uint32_t>(host_of.size() * 100 + static_cast<size_t>(rails));
    job_ =
        std::make_unique<Job>(*network_, host_of, test::quick_options(timeout_ms), traffic(seed));
    ASSERT_TRUE(job_->await_rounds(kWarm));
    job_->mark();
  }

  // So many more rounds are done by all.
  bool goes_on(int rounds = 40) {
    int done = 0;
    for (int rank = 0; rank < job_->ranks(); ++rank)
      done = std::max<int>(done, job_->board().rounds[rank]);
    return job_->await_rounds(done + rounds);
  }

  void expect_to_end_well() {
    job_->board().enough = 1;
    expect_all_well(*job_, std::chrono::seconds(40));
  }

  // Of all ranks but those of `gone`: an error that names one of `named`, soon enough.
  void expect_told(const std::vector<int>& gone, const std::vector<int>& named,
                   std::chrono::milliseconds within) {
    const std::vector<Ending> endings = job_->endings(std::chrono::seconds(40));
    for (int rank = 0; rank < job_->ranks(); ++rank) {
      if (std::find(gone.begin(), gone.end(), rank) != gone.end()) continue;
      const Ending& ending = endings[static_cast<size_t>(rank)];
      EXPECT_FALSE(ending.hung) << "rank " << rank;
      EXPECT_FALSE(ending.killed) << "rank " << rank;
      EXPECT_LE(ending.after, within) << "rank " << rank << ": " << ending.text;
      const bool names = std::any_of(named.begin(), named.end(),
                                     [&](int who) { return names_rank(ending.text, who); });
      EXPECT_TRUE(names) << "rank " << rank << ": \"" << ending.text << '"';
    }
    endings_ = endings;
  }

  std::vector<int> host_of_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Job> job_;
  std::vector<Ending> endings_;
};

}  // namespace tessera::multihost
