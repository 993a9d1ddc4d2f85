// Tells whether the processes of other ranks still live, and which are stopped: pidfds where the
// kernel has them (opened while the peer is known to live, so that a reused pid is never taken for
// the peer), else pid and start time from /proc. Ranks of the own process always live. Ranks in
// another pid namespace cannot be watched (a log line says so): only a deadline tells that they are
// gone. Thread safety: all but watch() may be called from any thread at any time.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "comm/bootstrap.h"

namespace tessera {

// How often a rank that waits for others looks whether they live: costs system calls.
inline constexpr std::chrono::milliseconds kBetweenLooks{100};

class Liveness {
 public:
  // A process that ended before the call is reported by dead(), not by an error.
  static Result<Liveness> watch(const std::vector<Member>& members, int own_rank);

  // Lowest rank whose process has ended, or -1. No allocation; one poll() per 128 other processes.
  // A zombie counts as dead.
  int dead() const;
  // The same for one rank.
  bool dead(int rank) const;

  // Those of `ranks` whose process has ended; one poll() per 128 other processes.
  std::vector<int> dead_among(std::span<const int> ranks) const;

  // What to report for a wait of `who` that ended at its deadline with `overdue`: kRemote naming a
  // rank whose process is stopped, by a signal or a debugger, if /proc shows one; else `overdue`.
  Status explain(const std::string& who, const Status& overdue) const;

 private:
  // One process; ranks that share it are represented by the lowest.
  struct Watched {
    int rank = -1;
    int pid = 0;
    uint64_t start_time = 0;  // of /proc/pid/stat. 0: had ended before, or /proc is masked
    Fd fd;
  };

  // Calls see(index into watched_) for each that has ended, until it returns false.
  template <class See>
  void look(const See& see) const;

  std::vector<Watched> watched_;  // by rank
  std::vector<int> by_rank_;      // rank -> index into watched_; -1: own process, or not watched
};

// "the process of rank 2 has ended", or the same of several.
std::string ended_text(std::span<const int> ranks);

}  // namespace tessera
