// Where a simulation's steps come from: a plan, or, for thousands of ranks, one rank's program.
//
// A ring all-reduce of 4,096 ranks has 33 million steps. But every rank's program is rank 0's,
// turned: with r added to every rank, block and chunk, modulo their number.
//
//      rank 0   put block 3 to rank 1 | add block 2, put it to rank 1 | ...
//      rank 1   put block 0 to rank 2 | add block 3, put it to rank 2 | ...      4 ranks
//
// Algorithms that say so (Algorithm::rotates) are built for rank 0 only, by the same code that
// builds them for all (I1), and the simulation turns steps as it meets them. Slots and counters
// have the same numbers at every rank.
//
// Thread safety: a value type.
#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/status.h"
#include "plan/plan.h"
#include "simulator/code.h"

namespace tessera::simulator {

class Source {
 public:
  // Checks ids, and nothing of what verify() proves: a plan that deadlocks may be simulated.
  static Result<Source> of(const Plan& plan);
  // The algorithm's plan, in the compact form where it has one.
  static Result<Source> of(const Algorithm& algorithm, AlgorithmParams params);

  const std::string& name() const { return name_; }
  int ranks() const { return ranks_; }
  bool compact() const { return code_.programs.size() < static_cast<size_t>(ranks_); }
  uint64_t steps_per_pass() const;
  // "put chunk 3 to rank 1, raise counter 4 of rank 1"
  std::string describe(int rank, int lane, uint32_t step) const;

  const PlanCode& code() const { return code_; }
  const StepCode& step(int rank, int lane, uint32_t step) const {
    const uint32_t at = program(rank).first_lane + static_cast<uint32_t>(lane);
    return code_.steps[code_.lanes[at].first_step + step];
  }
  // How the steps of `rank` are read: its program, and what to add to ranks and chunks.
  const ProgramCode& program(int rank) const {
    return code_.programs[compact() ? 0 : static_cast<size_t>(rank)];
  }
  uint32_t turned_rank(uint32_t peer, uint32_t rank) const {
    if (!compact()) return peer;
    const uint32_t sum = peer + rank;
    return sum < static_cast<uint32_t>(ranks_) ? sum : sum - static_cast<uint32_t>(ranks_);
  }
  uint32_t turned_chunk(uint32_t chunk, uint32_t rank) const {
    return compact() ? (chunk + rank * code_.chunk_shift) % code_.chunks_per_block : chunk;
  }

 private:
  static Result<Source> decoded(const Plan& plan, size_t programs);

  std::string name_;
  int ranks_ = 1;
  PlanCode code_;
};

// The whole plan of which `first` has only rank 0's program.
Plan rotated(const Plan& first);

}  // namespace tessera::simulator
