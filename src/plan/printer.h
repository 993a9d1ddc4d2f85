// Plans for people: a text with one line per step, and a picture of the timeline.
// Both need a plan of correct form (as of load_json() or an algorithm); it need not verify.
// Thread safety: pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "plan/plan.h"

namespace tessera {

// For example
//     1  put-reduce  scratch[0] + input[1] -> scratch[1]@2  wait c0>=1 of pass -2  signal c1+1@2
// where @2 says that it belongs to rank 2.
std::string to_text(const Plan& plan);

// What the picture's clock says about a step: overhead + bytes moved; a signal to a peer arrives
// `latency` later. Units are arbitrary: only proportions show.
struct TimelineCosts {
  double overhead = 1;   // per step
  double per_chunk = 4;  // per chunk read or written, local
  double per_remote_chunk = 6;
  double latency = 3;  // of a signal between ranks
};

// An SVG document: a row per lane, a box per step of one pass, an arrow per signal that a step
// waits for. Steps that can never run are left out and counted in the caption. kInvalidArgument for
// plans of more than 20000 steps, which no picture can show.
Result<std::string> to_svg(const Plan& plan, const TimelineCosts& costs = {});

}  // namespace tessera
