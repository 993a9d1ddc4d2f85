// Bruck's algorithms: ceil(log2 n) hops for any rank count.
//
// All-gather: before round k a rank has the blocks of the 2^k ranks from itself on; it sends them
// to the rank 2^k before it, and so doubles what it has. The last round sends only what is missing.
//
//      5 ranks, blocks that rank 0 has       round 0   0 1          from rank 1
//                                            round 1   0 1 2 3      from rank 2
//                                            round 2   0 1 2 3 4    from rank 4: one block
//
// All-to-all: the block for the rank j further on travels along the bits of j: in round k every
// rank sends the blocks whose j has bit k to the rank 2^k further on. A block makes as many hops as
// j has bits, all of them within ceil(log2 n) rounds.
//
//      j = 5 = 101b:   round 0: r -> r + 1     round 1: rests      round 2: r + 1 -> r + 5
//
// Cost: all-gather  ceil(log2 n) alpha + (n-1)/n S beta
//       all-to-all  ceil(log2 n) (alpha + S/2 beta)
#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

constexpr const char* kBruckName = "bruck";

// One round of the all-gather: `count` blocks from each rank's own on go to the rank `distance`
// before it.
void all_gather_round(PlanBuilder& plan, Exchange& exchange, int n, int distance, int count) {
  std::vector<std::vector<Slot>> incoming(n);
  for (int rank = 0; rank < n; ++rank) {
    const int to = wrap(rank - distance, n);
    LaneRef lane = plan.lane(rank);
    for (const BlockRun& run : cut_at_wrap(rank, count, n)) {
      const Slot slot = exchange.slot(rank, to, run.count);
      StepRef step = distance == 1
                         ? lane.copy(0, {slot.ref(), output(rank, rank)}, input(rank, 0))
                         : lane.copy(0, slot.ref(), output(rank, run.first)).span(run.count);
      exchange.fill(step, slot);
      incoming[to].push_back(slot);
    }
  }
  for (int rank = 0; rank < n; ++rank) {
    const std::vector<BlockRun> runs = cut_at_wrap(rank + distance, count, n);
    for (size_t i = 0; i < runs.size(); ++i) {
      const Slot& slot = incoming[rank][i];
      StepRef step = plan.lane(rank).copy(0, output(rank, runs[i].first), slot.ref());
      exchange.take(step.span(runs[i].count), slot);
    }
  }
}

}  // namespace

Plan bruck_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kBruckName, Collective::kAllGather, params);
  PlanBuilder plan(kBruckName, Collective::kAllGather, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  for (int distance = 1; distance < n; distance *= 2) {
    all_gather_round(plan, exchange, n, distance, std::min(distance, n - distance));
  }
  return std::move(plan).build();
}

Plan bruck_all_to_all(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kBruckName, Collective::kAllToAll, params);
  PlanBuilder plan(kBruckName, Collective::kAllToAll, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));

  // at[r][j]: the slot where the block that has `j` to go from its source rests at rank r; none
  // before its first hop.
  std::vector<std::vector<Slot>> at(n, std::vector<Slot>(n));
  for (int distance = 1; distance < n; distance *= 2) {
    std::vector<std::vector<Slot>> next = at;
    for (int rank = 0; rank < n; ++rank) {
      const int to = (rank + distance) % n;
      for (int j = distance; j < n; ++j) {
        if ((j & distance) == 0) continue;
        const Slot out = exchange.slot(rank, to);
        const bool first_hop = (j & (distance - 1)) == 0;
        const Ref src = first_hop ? input(rank, (rank + j) % n) : at[rank][j].ref();
        StepRef step = plan.lane(rank).copy(0, out.ref(), src);
        if (!first_hop) exchange.take(step, at[rank][j]);
        exchange.fill(step, out);
        next[to][j] = out;
      }
    }
    at = std::move(next);
  }
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    lane.copy(0, output(rank, rank), input(rank, rank));
    for (int j = 1; j < n; ++j) {
      StepRef step = lane.copy(0, output(rank, wrap(rank - j, n)), at[rank][j].ref());
      exchange.take(step, at[rank][j]);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
