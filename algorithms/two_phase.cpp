// Two-phase all-reduce: a reduce-scatter and an all-gather, each in one hop.
//
// Chunk c belongs to rank c. All send it their contribution, it adds them up in rank order and
// sends the result back to all. The sum of a chunk is made once, so all ranks end bitwise equal,
// and each rank sums only 1/n of the data.
//
//      rank 0  [c0 c1 c2]   --c1--> 1, --c2--> 2       sum c0 --> own output, 1, 2
//      rank 1  [c0 c1 c2]   --c0--> 0, --c2--> 2       sum c1 --> own output, 0, 2
//      rank 2  [c0 c1 c2]   --c0--> 0, --c1--> 1       sum c2 --> own output, 0, 1
//
// Cost: 2 alpha + 2 (n-1)/n S beta + (n-1)/n S gamma. Bytes sent by a rank: the optimum.
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {

Plan two_phase_all_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("two-phase", Collective::kAllReduce, params);
  PlanBuilder plan("two-phase", Collective::kAllReduce, n, -1, n, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));

  std::vector<std::vector<Slot>> parts(n, std::vector<Slot>(n));    // [from][to]: chunk `to`
  std::vector<std::vector<Slot>> results(n, std::vector<Slot>(n));  // [from][to]: chunk `from`
  for (int to = 0; to < n; ++to) {
    for (int from = 0; from < n; ++from) {
      if (from == to) continue;
      parts[from][to] = exchange.slot(from, to);
      results[from][to] = exchange.slot(from, to);
    }
  }
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    for (int s = 1; s < n; ++s) {
      const int peer = (rank + s) % n;
      const Slot& slot = parts[rank][peer];
      exchange.fill(lane.copy(peer, slot.ref(), input(rank, peer)), slot);
    }
    std::vector<Ref> srcs, dsts{output(rank, rank)};
    for (int from = 0; from < n; ++from) {
      srcs.push_back(from == rank ? input(rank, rank) : parts[from][rank].ref());
    }
    for (int s = 1; s < n; ++s) dsts.push_back(results[rank][(rank + s) % n].ref());
    StepRef sum = lane.reduce(rank, std::move(dsts), std::move(srcs));
    for (int s = 1; s < n; ++s) {
      exchange.take(sum, parts[(rank - s + n) % n][rank]);
      exchange.fill(sum, results[rank][(rank + s) % n]);
    }
    for (int s = 1; s < n; ++s) {
      const int from = (rank - s + n) % n;
      const Slot& slot = results[from][rank];
      exchange.take(lane.copy(from, output(rank, from), slot.ref()), slot);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
