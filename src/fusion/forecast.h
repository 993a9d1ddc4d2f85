// The model of a fused operator: how long a launch takes when the kernel computes for so long, and
// how long the product and then the collective would.
//
//   fused    the plan is walked (simulator/simulate.h) over the machine's lines, while the kernel
//            completes chunk after chunk in the staggered order, each in its share of the time
//            and not less than compute and the rank's own copies and sums together: hosts compute
//            and communicate on one core
//   unfused  compute + the walk of the collective's own plan + compute of what uses it
//
// A consumer's kernel (all-reduce and all-gather may have one) uses rows in the staggered order as
// they land: chunk k is done at max(done(k - 1), landed(k)) + its share.
// Thread safety: pure functions.
#pragma once

#include "algorithms/algorithms.h"
#include "fusion/geometry.h"
#include "fusion/plans.h"
#include "simulator/routes.h"

namespace tessera {

// Microseconds.
struct Kernels {
  double produce_us = 0;  // of the kernel that makes the input; 0: it is there
  double consume_us = 0;  // of the kernel that uses the output; 0: none
  bool staggered = true;  // tiles in the order of tsrTileOrder; else from the first to the last
};

// Time of a launch of the operator with this plan, which `shape` made or whose counters are as if it
// had (user_plan.h).
Result<double> fused_time(const Plan& plan, const FusedDescription& description,
                          const Geometry& geometry, const FusedPlanShape& shape,
                          const simulator::Routes& routes, const Kernels& kernels);

// Time of the collective alone as an algorithm's plan; slots of `slot_bytes` bytes, 0: unlimited.
Result<double> collective_time(const Algorithm& algorithm, const AlgorithmParams& params,
                               size_t block_bytes, size_t slot_bytes,
                               const simulator::Routes& routes);

}  // namespace tessera
