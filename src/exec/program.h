// A rank's part of a verified plan, decoded for the interpreter: flat arrays of small PODs, no
// pointers into memory that moves. Positions are offsets into a region: the memory that each team
// member provides for one linked plan.
//
//   region of a member:  | counters, one line each | copy 0: slot 0, slot 1, ... | copy 1: ... |
//                        (scratch_depth copies)
//
// The layout is the same for all members (sized for the largest), so that one offset addresses any
// of them. A counter that announces exactly one put into one slot lives in that slot's header
// ("embedded"), once per copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace tessera {

struct OperandCode {
  uint16_t rank;
  uint8_t buffer;  // Buffer
  uint32_t chunk;
};

struct WaitCode {
  uint32_t counter;  // id; the slot's index when embedded
  uint32_t increment;
  uint32_t lag;
  uint32_t per_pass;
  uint16_t from;  // a rank that signals it: for messages
  bool embedded;
};

struct SignalCode {
  uint32_t counter;  // id at the owner; the slot's index when embedded
  uint32_t increment;
  uint32_t per_pass;  // of a counter that only this signal raises; 0: others raise it too
  uint32_t period;    // raised in every period-th pass only (a power of two), for all since
  uint16_t rank;
  bool embedded;
};

struct StepCode {
  uint8_t op;  // Op
  bool completes;
  uint16_t dsts, srcs, waits, signals;  // how many; operands lie dsts first, then srcs
  uint32_t first_operand, first_wait, first_signal;
  uint32_t chunk, chunks;
  uint32_t tally;  // of an accumulation, which the first signal raises: its sum of a pass; else 0
};

struct LaneCode {
  uint32_t first_step, steps;
};

// Everything the interpreter reads, as plain pointers: also valid on a device.
struct ProgramView {
  const LaneCode* lanes;
  const StepCode* steps;
  const OperandCode* operands;
  const WaitCode* waits;
  const SignalCode* signals;
  uint32_t num_lanes;
  uint32_t chunks_per_block;
  uint32_t depth;      // copies of scratch
  uint32_t counters;   // per region
  uint32_t slots;      // per copy
  size_t slot_stride;  // bytes, header included
  uint16_t rank;       // whose program this is
};

struct Program {
  std::vector<LaneCode> lanes;
  std::vector<StepCode> steps;
  std::vector<OperandCode> operands;
  std::vector<WaitCode> waits;
  std::vector<SignalCode> signals;
  uint32_t max_operands = 0;  // of one step
  uint32_t counters = 0, slots = 0, depth = 1, chunks_per_block = 1;
  size_t slot_stride = 0;
  uint16_t rank = 0;

  ProgramView view() const {
    return {lanes.data(),     steps.data(),
            operands.data(),  waits.data(),
            signals.data(),   static_cast<uint32_t>(lanes.size()),
            chunks_per_block, depth,
            counters,         slots,
            slot_stride,      rank};
  }
};

}  // namespace tessera
