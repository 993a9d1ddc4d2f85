// Send and receive: rank 0's input becomes rank 1's output.
//
//      staged   0: put --> slot at 1 --> 1: copy to output
//      direct   0: put chunk 0 --> output      1: get chunk 1     both ends move half
//
// Staged, credits let the sender run ahead by scratch_depth passes.
//
// Cost: staged  alpha + S beta, and one copy out     direct  2 alpha + S/2 beta
#include <utility>

#include "algorithms/families.h"
#include "algorithms/visits.h"

namespace tessera {

Plan staged_send_recv(const AlgorithmParams& params) {
  PlanBuilder plan("staged", Collective::kSendRecv, 2, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const Slot slot = exchange.slot(0, 1);
  exchange.fill(plan.lane(0).copy(0, slot.ref(), input(0, 0)), slot);
  exchange.take(plan.lane(1).copy(0, output(1, 0), slot.ref()), slot);
  return std::move(plan).build();
}

Plan direct_send_recv(const AlgorithmParams&) {
  PlanBuilder plan("direct", Collective::kSendRecv, 2, -1, 2, 1);
  Visits visits(plan, 2);
  visits.allow_all();
  visits.enter();
  for (int mover = 0; mover < 2; ++mover) {
    StepRef step = plan.lane(mover).copy(mover, output(1, mover), input(0, mover));
    visits.begin(step, mover, 1 - mover);
    visits.end(step, mover, 1 - mover);
  }
  visits.leave();
  return std::move(plan).build();
}

}  // namespace tessera
