#include "algorithms/exchange.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera {

Slot Exchange::slot(int from, int to, int chunks) {
  Slot slot{from, to, plan_.scratch(to, chunks), chunks, plan_.counter(to), -1};
  if (credits_ == Credits::kAlways) slot.credit = plan_.counter(from);
  return slot;
}

Slot Exchange::slot_at_each(const AlgorithmParams& params) {
  Slot slot;
  slot.from = params.ranks - 1;
  for (int rank = 0; rank < programs(params); ++rank) {
    slot.first = plan_.scratch(rank);
    slot.arrived = plan_.counter(rank);
    if (credits_ == Credits::kAlways) slot.credit = plan_.counter(rank);
  }
  return slot;
}

void Exchange::fill(StepRef step, const Slot& slot) const {
  if (slot.credit >= 0) step.wait(slot.credit, 1, depth_);
  step.signal(slot.to, slot.arrived);
}

void Exchange::await(StepRef step, const Slot& slot) const { step.wait(slot.arrived); }

void Exchange::release(StepRef step, const Slot& slot) const {
  if (slot.credit >= 0) step.signal(slot.from, slot.credit);
}

void Exchange::take(StepRef step, const Slot& slot) const {
  await(step, slot);
  release(step, slot);
}

Plan alone(const char* name, Collective collective, const AlgorithmParams& params) {
  PlanBuilder plan(name, collective, 1, has_root(collective) ? 0 : -1, 1, params.scratch_depth);
  LaneRef lane = plan.lane(0);
  if (reduces(collective)) {
    lane.reduce(0, {output(0, 0)}, {input(0, 0)});
  } else if (collective != Collective::kBarrier) {
    lane.copy(0, output(0, 0), input(0, 0));
  }
  return std::move(plan).build();
}

std::vector<BlockRun> cut_at_wrap(int first, int count, int ranks) {
  first = wrap(first, ranks);
  const int head = std::min(count, ranks - first);
  std::vector<BlockRun> runs;
  if (head > 0) runs.push_back({first, head});
  if (count > head) runs.push_back({0, count - head});
  return runs;
}

int floor_power_of_two(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

int lowest_bit(int v) { return v & -v; }

}  // namespace tessera
