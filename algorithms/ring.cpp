// Rings: every rank talks only to its two neighbours, and every link carries the least bytes
// possible.
//
// Reduce-scatter: the sum for rank d starts at its right neighbour d + 1 and goes round to d, each
// rank adding its own contribution on the way. All n sums travel at the same time, one rank apart.
// All-gather: each rank's data starts at home and goes round; everyone keeps a copy.
//
//        rank 0         rank 1         rank 2         rank 3         sum 0 travels 1 -> 2 -> 3 -> 0
//   s=0                 send s0  --->
//   s=1                                add, send ---->
//   s=2                                               add, send ----> (rank 0) add: done
//
// All-reduce: the one after the other on n chunks; the step that finishes a sum starts its way
// round.
// Every hop has a slot of its own, and a rank adds and passes on in one step.
//
// Cost: all-reduce      2 (n-1) alpha + 2 (n-1)/n S beta + (n-1)/n S gamma
//       reduce-scatter  (n-1) alpha + (n-1)/n S (beta + gamma)
//       all-gather      (n-1) alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

constexpr const char* kRingName = "ring";

// [s]: the slot that the left neighbour fills in hop s, as rank 0 has it. The plan rotates: every
// rank has the same.
using Hops = std::vector<Slot>;

Hops make_hops(Exchange& exchange, const AlgorithmParams& params) {
  Hops hops(params.ranks - 1);
  for (Slot& hop : hops) hop = exchange.slot_at_each(params);
  return hops;
}

// Hops 0 .. n-2 of the reduce-scatter of one rank. `chunk_of(d)` is the chunk within a block, of
// the sum that belongs to rank d. The last sum goes to `result`, and to `onward` if there is one.
template <class ChunkOf>
void reduce_round(PlanBuilder& plan, const Exchange& exchange, const Hops& hops, int rank,
                  ChunkOf chunk_of, Ref result, const Slot* onward) {
  const int n = static_cast<int>(hops.size()) + 1;
  const int right = (rank + 1) % n;
  LaneRef lane = plan.lane(rank);
  const int first = wrap(rank - 1, n);
  const Slot start = hops[0].at(right, n);
  exchange.fill(lane.copy(chunk_of(first), start.ref(), input(rank, first)), start);
  for (int s = 1; s < n; ++s) {
    const int owner = wrap(rank - 1 - s, n);
    const Slot in = hops[s - 1].at(rank, n);
    const Slot* out = s == n - 1 ? onward : &hops[s];
    std::vector<Ref> dsts;
    if (s == n - 1) dsts.push_back(result);
    if (out != nullptr) dsts.push_back(out->at(right, n).ref());
    StepRef step = lane.reduce(chunk_of(owner), std::move(dsts), {in.ref(), input(rank, owner)});
    exchange.take(step, in);
    if (out != nullptr) exchange.fill(step, out->at(right, n));
  }
}

// What arrives in hop s started at rank - 1 - s; it is kept, and passed on but for the last hop.
template <class ChunkOf>
void gather_round(PlanBuilder& plan, const Exchange& exchange, const Hops& hops, int rank,
                  ChunkOf chunk_of) {
  const int n = static_cast<int>(hops.size()) + 1;
  const int right = (rank + 1) % n;
  for (int s = 0; s < n - 1; ++s) {
    const int owner = wrap(rank - 1 - s, n);
    const Slot in = hops[s].at(rank, n);
    std::vector<Ref> dsts{output(rank, owner)};
    if (s + 1 < n - 1) dsts.push_back(hops[s + 1].at(right, n).ref());
    StepRef step = plan.lane(rank).copy(chunk_of(owner), std::move(dsts), in.ref());
    exchange.take(step, in);
    if (s + 1 < n - 1) exchange.fill(step, hops[s + 1].at(right, n));
  }
}

int only_chunk(int) { return 0; }
int own_chunk(int owner) { return owner; }

}  // namespace

Plan ring_all_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kRingName, Collective::kAllReduce, params);
  PlanBuilder plan(kRingName, Collective::kAllReduce, n, -1, n, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops sums = make_hops(exchange, params);
  const Hops results = make_hops(exchange, params);
  for (int rank = 0; rank < programs(params); ++rank) {
    reduce_round(plan, exchange, sums, rank, own_chunk, output(rank, rank), &results[0]);
    gather_round(plan, exchange, results, rank, own_chunk);
  }
  return std::move(plan).build();
}

Plan ring_reduce_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kRingName, Collective::kReduceScatter, params);
  PlanBuilder plan(kRingName, Collective::kReduceScatter, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, params);
  for (int rank = 0; rank < programs(params); ++rank) {
    reduce_round(plan, exchange, hops, rank, only_chunk, output(rank, 0), nullptr);
  }
  return std::move(plan).build();
}

Plan ring_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kRingName, Collective::kAllGather, params);
  PlanBuilder plan(kRingName, Collective::kAllGather, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, params);
  for (int rank = 0; rank < programs(params); ++rank) {
    const Slot out = hops[0].at((rank + 1) % n, n);
    StepRef start = plan.lane(rank).copy(0, {out.ref(), output(rank, rank)}, input(rank, 0));
    exchange.fill(start, out);
    gather_round(plan, exchange, hops, rank, only_chunk);
  }
  return std::move(plan).build();
}

}  // namespace tessera
