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
// Every hop has a slot of its own, and a rank adds and passes on in one step. "Next" and "left" are
// those of AlgorithmParams::order.
//
// Cost: all-reduce      2 (n-1) alpha + 2 (n-1)/n S beta + (n-1)/n S gamma
//       reduce-scatter  (n-1) alpha + (n-1)/n S (beta + gamma)
//       all-gather      (n-1) alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"
#include "algorithms/places.h"

namespace tessera {
namespace {

constexpr const char* kRingName = "ring";

// [s]: the slot that the left neighbour fills in hop s, as rank 0 has it. Every rank has the same.
using Hops = std::vector<Slot>;

Hops make_hops(Exchange& exchange, const AlgorithmParams& params) {
  Hops hops(params.ranks - 1);
  for (Slot& hop : hops) hop = exchange.slot_at_each(params);
  return hops;
}

// Hops 0 .. n-2 of the reduce-scatter of the rank at one place. `chunk_of(d)` is the chunk within a
// block, of the sum that belongs to rank d. The last sum goes to `result`, and to `onward` if there
// is one.
template <class ChunkOf>
void reduce_round(PlanBuilder& plan, const Exchange& exchange, const Places& places,
                  const Hops& hops, int place, ChunkOf chunk_of, Ref result, const Slot* onward) {
  const int n = static_cast<int>(hops.size()) + 1;
  const int rank = places.rank(place);
  LaneRef lane = plan.lane(rank);
  const int first = places.rank(place - 1);
  const Slot start = places.at(hops[0], place + 1);
  exchange.fill(lane.copy(chunk_of(first), start.ref(), input(rank, first)), start);
  for (int s = 1; s < n; ++s) {
    const int owner = places.rank(place - 1 - s);
    const Slot in = places.at(hops[s - 1], place);
    const Slot* out = s == n - 1 ? onward : &hops[s];
    std::vector<Ref> dsts;
    if (s == n - 1) dsts.push_back(result);
    if (out != nullptr) dsts.push_back(places.at(*out, place + 1).ref());
    StepRef step = lane.reduce(chunk_of(owner), std::move(dsts), {in.ref(), input(rank, owner)});
    exchange.take(step, in);
    if (out != nullptr) exchange.fill(step, places.at(*out, place + 1));
  }
}

// What arrives in hop s started s + 1 places before; it is kept, and passed on but for the last hop.
template <class ChunkOf>
void gather_round(PlanBuilder& plan, const Exchange& exchange, const Places& places,
                  const Hops& hops, int place, ChunkOf chunk_of) {
  const int n = static_cast<int>(hops.size()) + 1;
  const int rank = places.rank(place);
  for (int s = 0; s < n - 1; ++s) {
    const int owner = places.rank(place - 1 - s);
    const Slot in = places.at(hops[s], place);
    std::vector<Ref> dsts{output(rank, owner)};
    if (s + 1 < n - 1) dsts.push_back(places.at(hops[s + 1], place + 1).ref());
    StepRef step = plan.lane(rank).copy(chunk_of(owner), std::move(dsts), in.ref());
    exchange.take(step, in);
    if (s + 1 < n - 1) exchange.fill(step, places.at(hops[s + 1], place + 1));
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
  const Places places(params);
  for (int place = 0; place < programs(params); ++place) {
    const int rank = places.rank(place);
    reduce_round(plan, exchange, places, sums, place, own_chunk, output(rank, rank), &results[0]);
    gather_round(plan, exchange, places, results, place, own_chunk);
  }
  return std::move(plan).build();
}

Plan ring_reduce_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kRingName, Collective::kReduceScatter, params);
  PlanBuilder plan(kRingName, Collective::kReduceScatter, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, params);
  const Places places(params);
  for (int place = 0; place < programs(params); ++place) {
    const Ref result = output(places.rank(place), 0);
    reduce_round(plan, exchange, places, hops, place, only_chunk, result, nullptr);
  }
  return std::move(plan).build();
}

Plan ring_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kRingName, Collective::kAllGather, params);
  PlanBuilder plan(kRingName, Collective::kAllGather, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, params);
  const Places places(params);
  for (int place = 0; place < programs(params); ++place) {
    const int rank = places.rank(place);
    const Slot out = places.at(hops[0], place + 1);
    StepRef start = plan.lane(rank).copy(0, {out.ref(), output(rank, rank)}, input(rank, 0));
    exchange.fill(start, out);
    gather_round(plan, exchange, places, hops, place, only_chunk);
  }
  return std::move(plan).build();
}

}  // namespace tessera
