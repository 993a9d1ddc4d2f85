// Gates: how a plan is tied to those who make its input and use its output piece by piece.
//
//   external counter i of a rank        chunk i of the rank's input is there, once it has got its
//                                       arrivals of the pass; i < gated
//   counter gated + j of a rank         chunk j of its output is there for good
//
// Thread safety: pure functions.
#pragma once

#include "plan/verifier.h"

namespace tessera {

// Proves, whatever the timing:
// - a rank's counters below `gated` are external, and no others;
// - a step reads a gated chunk of its own rank's input after all arrivals of the pass;
// - no step touches another rank's input or output: those who gate stand for their own rank only;
// - each chunk of an output has its counter, raised once a pass, by 1, by a step after all that
//   write the chunk (itself included) and that fills no slot of the counter's rank (whose header
//   could hold the counter, exec/link.h); some step of the pass waits for it.
// Or returns the first fault, with its place: kPlanCounter, kPlanRace.
Status check_gates(const VerifiedPlan& plan, int gated);

}  // namespace tessera
