// A run of slots that one sender fills several times in each pass, so that scratch stays small
// whatever the rank count.
//
//      message 0: fill, take, credit    message 1: wait for the credit, fill, take, credit    ...
//
// The k-th message of a pass waits for the k-th credit of the same pass. Between passes the
// argument of exchange.h holds: with two copies of scratch, in collectives among equals, no credit
// is needed; with one copy the first message waits for the last credit of the pass before.
#pragma once

#include "algorithms/exchange.h"

namespace tessera {

class Conveyor {
 public:
  // `chunks` slots of `to`, filled `messages` times in each pass by `from`.
  Conveyor(PlanBuilder& plan, int scratch_depth, int from, int to, int chunks, int messages);

  Ref ref(int offset = 0) const { return {to_, Buffer::kScratch, first_ + offset}; }

  // The sender: its first and last step that fills the slots with the next message.
  void begin_fill(StepRef step);
  void end_fill(StepRef step);
  // The receiver: its first and last step that reads the next message.
  void await(StepRef step);
  void release(StepRef step);

 private:
  bool credit_between_passes() const { return depth_ < 2; }

  int from_, to_, first_;
  int messages_, depth_;
  int arrived_ = 0, credit_ = -1;
  int filled_ = 0, awaited_ = 0, released_ = 0;
};

}  // namespace tessera
