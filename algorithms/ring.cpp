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

constexpr const char* kName = "ring";

// [s][r]: the slot at rank r that its left neighbour fills in hop s.
std::vector<std::vector<Slot>> make_hops(Exchange& exchange, int n) {
  std::vector<std::vector<Slot>> hops(n - 1);
  for (std::vector<Slot>& hop : hops) {
    for (int rank = 0; rank < n; ++rank) hop.push_back(exchange.slot(wrap(rank - 1, n), rank));
  }
  return hops;
}

using Hops = std::vector<std::vector<Slot>>;

// Hops 0 .. n-2 of the reduce-scatter of one rank. `chunk_of(d)` is the chunk within a block, of
// the sum that belongs to rank d. The last sum goes to `result`, and to `onward` if there is one.
template <class ChunkOf>
void reduce_round(PlanBuilder& plan, const Exchange& exchange, const Hops& hops, int rank,
                  ChunkOf chunk_of, Ref result, const Slot* onward) {
  const int n = static_cast<int>(hops.size()) + 1;
  const int right = (rank + 1) % n;
  LaneRef lane = plan.lane(rank);
  const int first = wrap(rank - 1, n);
  exchange.fill(lane.copy(chunk_of(first), hops[0][right].ref(), input(rank, first)),
                hops[0][right]);
  for (int s = 1; s < n; ++s) {
    const int owner = wrap(rank - 1 - s, n);
    const Slot& in = hops[s - 1][rank];
    const Slot* out = s == n - 1 ? onward : &hops[s][right];
    std::vector<Ref> dsts;
    if (s == n - 1) dsts.push_back(result);
    if (out != nullptr) dsts.push_back(out->ref());
    StepRef step = lane.reduce(chunk_of(owner), std::move(dsts), {in.ref(), input(rank, owner)});
    exchange.take(step, in);
    if (out != nullptr) exchange.fill(step, *out);
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
    const Slot& in = hops[s][rank];
    std::vector<Ref> dsts{output(rank, owner)};
    if (s + 1 < n - 1) dsts.push_back(hops[s + 1][right].ref());
    StepRef step = plan.lane(rank).copy(chunk_of(owner), std::move(dsts), in.ref());
    exchange.take(step, in);
    if (s + 1 < n - 1) exchange.fill(step, hops[s + 1][right]);
  }
}

int only_chunk(int) { return 0; }
int own_chunk(int owner) { return owner; }

}  // namespace

Plan ring_all_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kName, Collective::kAllReduce, params);
  PlanBuilder plan(kName, Collective::kAllReduce, n, -1, n, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops sums = make_hops(exchange, n);
  const Hops results = make_hops(exchange, n);
  for (int rank = 0; rank < n; ++rank) {
    reduce_round(plan, exchange, sums, rank, own_chunk, output(rank, rank),
                 &results[0][(rank + 1) % n]);
    gather_round(plan, exchange, results, rank, own_chunk);
  }
  return std::move(plan).build();
}

Plan ring_reduce_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kName, Collective::kReduceScatter, params);
  PlanBuilder plan(kName, Collective::kReduceScatter, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, n);
  for (int rank = 0; rank < n; ++rank) {
    reduce_round(plan, exchange, hops, rank, only_chunk, output(rank, 0), nullptr);
  }
  return std::move(plan).build();
}

Plan ring_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kName, Collective::kAllGather, params);
  PlanBuilder plan(kName, Collective::kAllGather, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, n);
  for (int rank = 0; rank < n; ++rank) {
    const Slot& out = hops[0][(rank + 1) % n];
    StepRef start = plan.lane(rank).copy(0, {out.ref(), output(rank, rank)}, input(rank, 0));
    exchange.fill(start, out);
    gather_round(plan, exchange, hops, rank, only_chunk);
  }
  return std::move(plan).build();
}

}  // namespace tessera
