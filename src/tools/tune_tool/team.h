// A stopwatch whose ranks are processes, forked from the caller, one for each.
//
// The caller writes each batch to every rank's socket and sleeps until rank 0 answers; a rank ends
// when its socket is closed, or with its parent.
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "base/fd.h"
#include "tools/tune_tool/seat.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {

class Team : public Stopwatch {
 public:
  static constexpr int kMostRanks = Shared::kMostRanks;

  static Result<std::unique_ptr<Stopwatch>> start(int ranks, const std::vector<Entrant>& entrants);
  // Waits for the ranks to end.
  ~Team() override;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Errors: a rank failed, having logged why; no batch can be timed after that.
  Result<double> time(const Batch& batch) override;

 private:
  struct Unmap {
    void operator()(Shared* shared) const;
  };

  Team() = default;
  Status share(int ranks);
  Result<std::vector<Fd>> connect(int ranks);
  Status fork_ranks(std::vector<Fd> ends, const std::vector<Entrant>& entrants);
  void kill_ranks();
  Status failed(size_t rank);

  std::unique_ptr<Shared, Unmap> shared_;
  std::vector<Fd> lines_;  // by rank
  std::vector<pid_t> pids_;
};

}  // namespace tessera::tune
