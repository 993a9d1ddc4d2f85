#include "fusion/plans.h"

#include <algorithm>
#include <utility>

#include "fusion/weaver.h"
#include "plan/limits.h"
#include "plan/shape.h"

namespace tessera {
namespace {

// Lanes of all ranks together: what a plan costs to verify grows with their square.
constexpr int kMostLanesOfAll = 512;

int most_lanes(const FusedPlanShape& shape) {
  return std::min(kMaxLanes - 1, std::max(1, kMostLanesOfAll / shape.ranks));
}

// Lanes of chunks that are sent and finished; accumulations get as many again.
int lanes_of(const FusedPlanShape& shape) {
  const int most = most_lanes(shape);
  return std::min(shape.ranks * shape.chunks, shape.any_order ? std::max(1, most / 2) : most);
}
int adding_lanes_of(const FusedPlanShape& shape) {
  if (!shape.any_order) return 0;
  return std::min((shape.ranks - 1) * shape.chunks, std::max(1, most_lanes(shape) / 2));
}

int chunks_per_block(const FusedPlanShape& shape) {
  return shape.collective == Collective::kAllReduce ? shape.ranks * shape.chunks : shape.chunks;
}

int output_chunks(const FusedPlanShape& shape) {
  return output_blocks(shape.collective, shape.ranks, -1, 0) * chunks_per_block(shape);
}

int count_of_tile_counters(const FusedPlanShape& shape) {
  return static_cast<int>(std::count_if(shape.arrivals.begin(), shape.arrivals.end(),
                                        [](uint32_t tiles) { return tiles > 0; }));
}

}  // namespace

FusedPlanShape shape_of(const FusedDescription& d, const Geometry& geometry, int ranks) {
  FusedPlanShape shape;
  shape.collective = d.collective;
  shape.mapping = d.mapping;
  shape.ranks = ranks;
  shape.chunks = d.chunks;
  shape.remote = d.remote;
  shape.any_order = d.any_order;
  shape.onto = d.onto;
  if (d.remote) shape.remote_chunks = d.remote_chunks;
  if (d.collective == Collective::kAllGather) return shape;
  const TileGrid grid{d.rows, d.cols, d.tile_rows, d.tile_cols};
  for (int chunk = 0; chunk < ranks * d.chunks; ++chunk) {
    shape.arrivals.push_back(
        static_cast<uint32_t>(grid.tiles_over(geometry.input().rows_of(chunk))));
  }
  return shape;
}

FusedCounters counters_of(const FusedPlanShape& shape) {
  return {0, count_of_tile_counters(shape)};
}

Weaver::Weaver(const FusedPlanShape& shape, const char* name)
    : shape_(shape),
      counters_(counters_of(shape)),
      plan_(name, shape.collective, shape.ranks, -1, chunks_per_block(shape), 1),
      exchange_(plan_, 1, Exchange::Credits::kAlways),
      lanes_(lanes_of(shape)),
      adding_lanes_(adding_lanes_of(shape)) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (const uint32_t tiles : shape.arrivals)
      if (tiles > 0) plan_.external_counter(rank, tiles);
    for (int chunk = 0; chunk < output_chunks(shape); ++chunk) plan_.counter(rank);
  }
}

Weaver::Sum Weaver::sum(int rank) {
  Sum sum;
  sum.slot = {rank, Buffer::kScratch, plan_.scratch(rank)};
  sum.tally = plan_.counter(rank);
  sum.read = plan_.counter(rank);
  return sum;
}

std::vector<Slot> Weaver::slots(int from, int to) {
  std::vector<Slot> slots;
  slots.reserve(static_cast<size_t>(chunks()));
  for (int c = 0; c < chunks(); ++c) slots.push_back(exchange_.slot(from, to));
  return slots;
}

void Weaver::await_tiles(StepRef step, int chunk) const {
  const auto at = static_cast<size_t>(chunk);
  if (at < shape_.arrivals.size() && shape_.arrivals[at] > 0)
    step.wait(counters_.tiles + chunk, shape_.arrivals[at]);
}

void Weaver::send(StepRef step, const Slot& slot, int c) {
  exchange_.fill(step, slot);
  if (shape_.remote && (shape_.remote_chunks >> c & 1) != 0) stored_.push_back(slot);
}

void Weaver::tell_landed(StepRef step, int rank, int chunk) const {
  step.signal(rank, counters_.landed + chunk);
}

// The pass ends with everything that lands.
Plan Weaver::finish() {
  for (int rank = 0; rank < ranks(); ++rank) {
    StepRef last = plan_.lane(rank, lanes_ + adding_lanes_).sync();
    for (int chunk = 0; chunk < output_chunks(shape_); ++chunk) last.wait(counters_.landed + chunk);
    for (const Slot& slot : stored_)
      if (slot.from == rank) last.wait(slot.credit);
  }
  return std::move(plan_).build();
}

Plan fused_plan(const FusedPlanShape& shape) {
  if (shape.onto) {
    Weaver weaver(shape, "fused-onto");
    weave_onto_sums(weaver);
    return weaver.finish();
  }
  const bool ring = shape.mapping == Mapping::kRing;
  Weaver weaver(shape, ring              ? "fused-ring"
                       : shape.any_order ? "fused-direct-any-order"
                                         : "fused-direct");
  switch (shape.collective) {
    case Collective::kReduceScatter:
    case Collective::kAllReduce:
      ring ? weave_ring_sums(weaver) : weave_direct_sums(weaver);
      break;
    case Collective::kAllGather:
      ring ? weave_ring_gather(weaver) : weave_direct_gather(weaver);
      break;
    default:  // description.cpp lets nothing else through
      weave_all_to_all(weaver);
      break;
  }
  return weaver.finish();
}

Plan without_kernels(Plan plan) {
  for (RankProgram& program : plan.programs) {
    for (Lane& lane : program.lanes) {
      for (Step& step : lane.steps) {
        const bool reads_input =
            std::any_of(step.srcs.begin(), step.srcs.end(),
                        [](const Ref& ref) { return ref.buffer == Buffer::kInput; });
        if (!reads_input) continue;
        step.op = Op::kSync;
        step.dsts.clear();
        step.srcs.clear();
      }
    }
  }
  return plan;
}

}  // namespace tessera
