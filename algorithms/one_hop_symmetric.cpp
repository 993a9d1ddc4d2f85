// One-hop exchanges among equals: every rank sends to every other at once, and all that anyone
// waits for is one hop away.
//
//        rank 0    rank 1    rank 2
//          |  \   /  |  \   /  |
//          |   \ /   |   \ /   |        every arrow at the same time
//          |    X    |    X    |
//          |   / \   |   / \   |
//          v  v   v  v  v   v  v
//        all-reduce: out = in0 + in1 + in2, in this order on every rank
//
// The right choice while alpha rules: the traffic grows with n, and the all-reduce repeats the same
// sums on every rank.
//
// Cost: all-reduce      alpha + (n-1) S beta + (n-1) S gamma
//       all-gather      alpha + (n-1)/n S beta
//       reduce-scatter  alpha + (n-1)/n S (beta + gamma)
//       all-to-all      alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

// slots[a][b]: where a's contribution lies at b.
using SlotTable = std::vector<std::vector<Slot>>;

SlotTable slots_between_all(Exchange& exchange, int ranks) {
  SlotTable slots(ranks, std::vector<Slot>(ranks));
  for (int to = 0; to < ranks; ++to) {
    for (int from = 0; from < ranks; ++from) {
      if (from != to) slots[from][to] = exchange.slot(from, to);
    }
  }
  return slots;
}

// One step of `rank` puts its input block `chunk` into a slot at every peer, and into `more`.
void put_to_all(PlanBuilder& plan, const Exchange& exchange, const SlotTable& slots, int rank,
                std::vector<Ref> more) {
  const int n = static_cast<int>(slots.size());
  std::vector<Ref> dsts = std::move(more);
  for (int s = 1; s < n; ++s) dsts.push_back(slots[rank][(rank + s) % n].ref());
  StepRef step = plan.lane(rank).copy(0, std::move(dsts), input(rank, 0));
  for (int s = 1; s < n; ++s) exchange.fill(step, slots[rank][(rank + s) % n]);
}

// Each rank sends input block p to each peer p.
void put_blocks(PlanBuilder& plan, const Exchange& exchange, const SlotTable& slots, int rank) {
  const int n = static_cast<int>(slots.size());
  for (int s = 1; s < n; ++s) {
    const int peer = (rank + s) % n;
    StepRef step = plan.lane(rank).copy(0, slots[rank][peer].ref(), input(rank, peer));
    exchange.fill(step, slots[rank][peer]);
  }
}

// All contributions in rank order, so that every rank computes bitwise the same sum.
void reduce_in_rank_order(PlanBuilder& plan, const Exchange& exchange, const SlotTable& slots,
                          int rank, Ref own) {
  const int n = static_cast<int>(slots.size());
  std::vector<Ref> srcs;
  for (int from = 0; from < n; ++from) {
    srcs.push_back(from == rank ? own : slots[from][rank].ref());
  }
  StepRef step = plan.lane(rank).reduce(0, {output(rank, 0)}, std::move(srcs));
  for (int from = 0; from < n; ++from) {
    if (from != rank) exchange.take(step, slots[from][rank]);
  }
}

// Each peer's slot goes to the output block of that peer, the peer that sends first to this rank
// first.
void take_blocks(PlanBuilder& plan, const Exchange& exchange, const SlotTable& slots, int rank) {
  const int n = static_cast<int>(slots.size());
  for (int s = 1; s < n; ++s) {
    const int from = (rank - s + n) % n;
    StepRef step = plan.lane(rank).copy(0, output(rank, from), slots[from][rank].ref());
    exchange.take(step, slots[from][rank]);
  }
}

}  // namespace

Plan one_hop_all_reduce(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kAllReduce, params);
  PlanBuilder plan("one-hop", Collective::kAllReduce, params.ranks, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const SlotTable slots = slots_between_all(exchange, params.ranks);
  for (int rank = 0; rank < params.ranks; ++rank) {
    put_to_all(plan, exchange, slots, rank, {});
    reduce_in_rank_order(plan, exchange, slots, rank, input(rank, 0));
  }
  return std::move(plan).build();
}

Plan one_hop_all_gather(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kAllGather, params);
  PlanBuilder plan("one-hop", Collective::kAllGather, params.ranks, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const SlotTable slots = slots_between_all(exchange, params.ranks);
  for (int rank = 0; rank < params.ranks; ++rank) {
    put_to_all(plan, exchange, slots, rank, {output(rank, rank)});
    take_blocks(plan, exchange, slots, rank);
  }
  return std::move(plan).build();
}

Plan one_hop_reduce_scatter(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kReduceScatter, params);
  PlanBuilder plan("one-hop", Collective::kReduceScatter, params.ranks, -1, 1,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const SlotTable slots = slots_between_all(exchange, params.ranks);
  for (int rank = 0; rank < params.ranks; ++rank) {
    put_blocks(plan, exchange, slots, rank);
    reduce_in_rank_order(plan, exchange, slots, rank, input(rank, rank));
  }
  return std::move(plan).build();
}

Plan one_hop_all_to_all(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kAllToAll, params);
  PlanBuilder plan("one-hop", Collective::kAllToAll, params.ranks, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const SlotTable slots = slots_between_all(exchange, params.ranks);
  for (int rank = 0; rank < params.ranks; ++rank) {
    put_blocks(plan, exchange, slots, rank);
    plan.lane(rank).copy(0, output(rank, rank), input(rank, rank));
    take_blocks(plan, exchange, slots, rank);
  }
  return std::move(plan).build();
}

}  // namespace tessera
