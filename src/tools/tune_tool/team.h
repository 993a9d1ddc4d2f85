// A team of processes that measure together: the caller is forked once per rank; ranks share a
// little memory and a barrier, and end with their parent.
//
// Thread safety: one thread per process.
#pragma once

#include <functional>
#include <span>

#include "base/status.h"
#include "comm/bootstrap.h"
#include "tools/tune_tool/cores.h"

namespace tessera::tune {

// What a rank sees of its team.
class Seat {
 public:
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // This rank goes to its core in that round (cores.h).
  void begin_round(int round);
  // All ranks meet. After it everybody sees what all wrote to the shared memory before.
  void meet();
  // The mean over all ranks of what each passes; the same for all.
  double mean(double value);
  // Rank 0's value, for all.
  double of_first(double value);
  // Rank 0's new unique id, for all.
  Result<UniqueId> new_id(const Config& config);
  // Rank 0 hands results to the parent, in order.
  void report(double value);
  // The parent shows how far the team is.
  void progress(double share);

 private:
  friend class Team;
  struct Shared;
  Shared* shared_ = nullptr;
  int rank_ = 0, ranks_ = 0;
  Cores cores_;
};

class Team {
 public:
  static constexpr int kMostRanks = 64;
  static constexpr size_t kMostResults = size_t{1} << 16;

  // Runs `work` in `ranks` processes; returns what rank 0 reported. `progress` is called now and
  // then with a share of 0 to 1. Errors: the first rank's that failed (its text was logged by it),
  // or that a process ended.
  static Result<std::vector<double>> run(int ranks, const std::function<Status(Seat&)>& work,
                                         const std::function<void(double)>& progress);
};

}  // namespace tessera::tune
