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
  // Ends the ranks.
  ~Team() override;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Errors: a rank failed, having logged why, or was killed; or none answers. No batch can be timed
  // after that, and each gets the same error.
  Result<double> time(const Batch& batch) override;

 private:
  struct Unmap {
    void operator()(Shared* shared) const;
  };

  Team() = default;
  Status share(int ranks);
  Result<std::vector<Fd>> connect(int ranks);
  Status fork_ranks(std::vector<Fd> ends, const std::vector<Entrant>& entrants);
  Status ask(const Batch& batch);
  Result<double> answer();
  Status fail(Status why);
  Status failed(size_t rank);

  std::unique_ptr<Shared, Unmap> shared_;
  std::vector<Fd> lines_;    // by rank
  std::vector<pid_t> pids_;  // by rank; 0: has been waited for
  Status failure_;
};

}  // namespace tessera::tune
