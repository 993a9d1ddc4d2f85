// Ranks, hosts and links that fail under random traffic. Every case ends well, or with an error that
// names who is missing, in bounded time.
#include <signal.h>

#include <algorithm>

#include "multihost/support/fixture.h"

namespace tessera::multihost {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::quick_options;
using ::testing::HasSubstr;

constexpr int kWarm = 24;  // rounds before something happens

Job::Body traffic(uint32_t seed) {
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
    job_ = std::make_unique<Job>(*network_, host_of, quick_options(timeout_ms), traffic(seed));
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
    expect_all_well(*job_, seconds(40));
  }

  // Of all ranks but those of `gone`: an error that names one of `named`, soon enough.
  void expect_told(const std::vector<int>& gone, const std::vector<int>& named,
                   milliseconds within) {
    const std::vector<Ending> endings = job_->endings(seconds(40));
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

struct Victim {
  std::vector<int> host_of;
  int rank;
};

class KilledRank : public Faults, public testing::WithParamInterface<Victim> {};

TEST_P(KilledRank, IsNamedToAllOthersWithinTwoSeconds) {
  const auto [host_of, victim] = GetParam();
  ASSERT_NO_FATAL_FAILURE(start(host_of, 20'000));
  job_->send_signal(victim, SIGKILL);
  expect_told({victim}, {victim}, milliseconds(2000));
  for (int rank = 0; rank < job_->ranks(); ++rank) {
    if (rank == victim) continue;
    EXPECT_THAT(endings_[rank].text, HasSubstr(to_string(Code::kRemote)));
  }
}

INSTANTIATE_TEST_SUITE_P(Victims, KilledRank,
                         testing::Values(Victim{{0, 1}, 0}, Victim{{0, 0, 1, 1}, 0},
                                         Victim{{0, 0, 1, 1}, 3}, Victim{{0, 1, 2}, 1},
                                         Victim{{0, 1, 2, 3, 0, 1}, 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.rank) + "Of" +
                                  std::to_string(info.param.host_of.size());
                         });

TEST_F(Faults, AStoppedRankIsNamedAtTheDeadline) {
  start({0, 0, 1, 1}, 2000);
  job_->send_signal(2, SIGSTOP);
  expect_told({2}, {2}, milliseconds(5000));
}

TEST_F(Faults, SurvivorsOfAKilledRankShrinkAndGoOn) {
  network_ = std::make_unique<Network>(3);
  job_ = std::make_unique<Job>(*network_, std::vector{0, 1, 1, 2}, quick_options(),
                               [](Communicator& comm, Board& board) -> std::string {
                                 const std::string end = run_traffic(comm, board, {});
                                 if (end.find("rank 2") == std::string::npos) return end;
                                 const std::vector<int> excluded = {2};
                                 const auto rest = comm.shrink(excluded, comm.options());
                                 if (!rest.ok()) return "shrink: " + describe(rest.status());
                                 Traffic more;
                                 more.rounds = 60;
                                 return run_traffic(*rest.value(), board, more);
                               });
  ASSERT_TRUE(job_->await_rounds(kWarm));
  job_->send_signal(2, SIGKILL);
  const std::vector<Ending> endings = job_->endings(seconds(40));
  for (const int rank : {0, 1, 3}) EXPECT_EQ(endings[rank].text, "") << "rank " << rank;
}

TEST_F(Faults, AHostWithoutItsCableIsNamedAtTheDeadline) {
  start({0, 0, 1}, 3000);
  network_->unplug(1);
  expect_told({}, {0, 1, 2}, milliseconds(8000));
}

TEST_F(Faults, ALinkThatComesBackCostsNothingButTime) {
  start({0, 1, 1}, 20'000);
  for (int flap = 0; flap < 2; ++flap) {
    network_->unplug(1);
    ::usleep(300'000);
    network_->plug(1);
    ASSERT_TRUE(goes_on(8));
  }
  expect_to_end_well();
}

TEST_F(Faults, AHostThatVanishesIsNamed) {
  start({0, 1, 2, 2}, 4000);
  for (const int rank : {2, 3}) job_->send_signal(rank, SIGSTOP);
  network_->remove(2);
  expect_told({2, 3}, {2, 3}, milliseconds(9000));
}

// Its connections are half open: it has forgotten them, the others have not.
TEST_F(Faults, AHostThatStartsAgainIsNamed) {
  start({0, 1, 1}, 20'000);
  network_->silence(0);
  job_->send_signal(0, SIGKILL);
  ::usleep(500'000);
  network_->unsilence(0);
  expect_told({0}, {0}, milliseconds(6000));
}

TEST_F(Faults, AnIdleHostThatVanishesIsNamedByTheNextCall) {
  network_ = std::make_unique<Network>(2);
  job_ = std::make_unique<Job>(*network_, std::vector{0, 1}, quick_options(3000),
                               [](Communicator& comm, Board& board) {
                                 Traffic some;
                                 some.rounds = kWarm;
                                 const std::string end = run_traffic(comm, board, some);
                                 if (!end.empty()) return end;
                                 while (board.enough == 0) ::usleep(1000);
                                 return run_traffic(comm, board, {});
                               });
  ASSERT_TRUE(job_->await_rounds(kWarm));
  job_->send_signal(1, SIGSTOP);
  network_->remove(1);
  job_->mark();
  job_->board().enough = 1;
  expect_told({1}, {1}, milliseconds(8000));
}

class LostRail : public Faults, public testing::WithParamInterface<bool> {};

TEST_P(LostRail, IsDoneWithoutAndOnlyTheLossOfBothEndsTheJob) {
  const bool silently = GetParam();
  const auto lose = [&](int rail) {
    silently ? network_->silence(1, rail) : network_->unplug(1, rail);
  };
  ASSERT_NO_FATAL_FAILURE(start({0, 0, 1, 1}, 20'000, 2));
  lose(0);
  ASSERT_TRUE(goes_on());
  lose(1);
  job_->mark();
  expect_told({}, {0, 1, 2, 3}, milliseconds(15'000));
}

INSTANTIATE_TEST_SUITE_P(How, LostRail, testing::Bool(), [](const auto& info) {
  return info.param ? "Silently" : "WithItsCarrier";
});

TEST_F(Faults, ARailThatComesAndGoesIsDoneWithout) {
  start({0, 1}, 20'000, 2);
  network_->unplug(0, 1);
  ASSERT_TRUE(goes_on());
  network_->plug(0, 1);
  ASSERT_TRUE(goes_on());
  expect_to_end_well();
}

// Longer than one of two rails would be waited for.
TEST_F(Faults, TheLastRailMayBeDownForAMoment) {
  start({0, 1}, 20'000, 2);
  network_->unplug(0, 1);
  ASSERT_TRUE(goes_on());
  network_->silence(0, 0);
  ::usleep(5'000'000);
  network_->unsilence(0, 0);
  ASSERT_TRUE(goes_on());
  expect_to_end_well();
}

TEST_F(Faults, ALinkThatTurnsSlowIsNoFailure) {
  start({0, 1, 1}, 20'000);
  network_->shape(1, "tbf rate 100mbit burst 64kb latency 50ms");
  ASSERT_TRUE(goes_on(12));
  expect_to_end_well();
}

// The queue holds next to nothing: most bursts lose packets.
TEST_F(Faults, ALinkThatDropsPacketsIsNoFailure) {
  start({0, 1}, 20'000);
  network_->shape(1, "tbf rate 400mbit burst 10kb limit 20kb");
  ASSERT_TRUE(goes_on(12));
  expect_to_end_well();
}

}  // namespace
}  // namespace tessera::multihost
