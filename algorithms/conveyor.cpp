#include "algorithms/conveyor.h"

namespace tessera {

Conveyor::Conveyor(PlanBuilder& plan, int scratch_depth, int from, int to, int chunks, int messages)
    : from_(from),
      to_(to),
      first_(plan.scratch(to, chunks)),
      messages_(messages),
      depth_(scratch_depth),
      arrived_(plan.counter(to)) {
  if (messages > 1 || credit_between_passes()) credit_ = plan.counter(from);
}

void Conveyor::begin_fill(StepRef step) {
  if (filled_ > 0) {
    step.wait(credit_, static_cast<uint32_t>(filled_));
  } else if (credit_between_passes()) {
    step.wait(credit_, static_cast<uint32_t>(messages_), static_cast<uint32_t>(depth_));
  }
}

void Conveyor::end_fill(StepRef step) {
  step.signal(to_, arrived_);
  ++filled_;
}

void Conveyor::await(StepRef step) { step.wait(arrived_, static_cast<uint32_t>(++awaited_)); }

void Conveyor::release(StepRef step) {
  ++released_;
  if (released_ < messages_ || credit_between_passes()) step.signal(from_, credit_);
}

}  // namespace tessera
