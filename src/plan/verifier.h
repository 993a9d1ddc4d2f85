// The verifier: proves that a plan computes its collective, whatever the timing.
//
// It runs the plan symbolically over as many passes as scratch_depth needs to show every reuse:
//
// - form: ids, shapes, spans and caps (plan/limits.h) are in range; each ref is one that the
//   collective's shape allows; inputs are never written.
// - balance: every waited-for value is raised in the pass it belongs to; nothing is signalled that
//   nobody waits for.
// - shared counters: a counter that several lanes raise is waited for in whole sums only, and no
//   lane raises it for the next pass before all have raised it for this one.
// - tallies: steps that accumulate in a slot share a counter and nobody else writes either; whoever
//   reads the slot comes after all of them.
// - deadlock: with unlimited delay of any step, some step can always run until all have.
// - coverage: each output chunk ends with exactly the required contributions, each once; no rank
//   leaves a barrier before all have entered it.
// - races: conflicting accesses are ordered by happens-before (lane order, and signal to wait),
//   reuse of scratch between passes included.
// - borders: a peer touches a rank's input or output only after that rank has begun the pass and
//   before it ends it.
//
// Each holds for separate buffers, for in-place buffers where the collective has that placement,
// and for any mixture of ranks that do one or the other.
//
// Cost: O(steps * passes * lanes) time: 256 ranks about a second, 1024 some twenty. Memory is that of
// all buffers, and one clock for each lane and for each signal that is under way.
// Thread safety: pure functions.
#pragma once

#include "base/status.h"
#include "plan/plan.h"

namespace tessera {

// A plan that passed verify(): the only thing that can be linked (I2). Immutable.
class VerifiedPlan {
 public:
  const Plan& plan() const { return plan_; }

 private:
  friend Result<VerifiedPlan> verify(Plan plan);
  explicit VerifiedPlan(Plan plan) : plan_(std::move(plan)) {}
  Plan plan_;
};

// Returns the plan with `completes` set on its steps, or the first fault found with a text that
// names rank, lane, step, buffer and chunk, such as "rank 2 lane 0 step 1 (reduce) reads scratch
// chunk 3 without waiting for rank 1 lane 0 step 0 (put)".
Result<VerifiedPlan> verify(Plan plan);

}  // namespace tessera
