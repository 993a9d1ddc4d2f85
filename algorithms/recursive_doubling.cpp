// Recursive doubling: in round k each rank exchanges all it has with the rank whose number differs
// in bit k.
//
//      rank      0     1     2     3            4 (beyond the power of two)
//                ^ ----------------------------- 4 gives its input to 0 first
//      round 0   0 <-> 1     2 <-> 3            has {0,1}  {2,3}
//      round 1   0 <-------> 2                  has {0,1,2,3}
//                      1 <-------> 3
//                | ----------------------------> 4 gets the result from 0 last
//
// All-reduce: partial sums are combined lower group first, so both partners, and by induction all
// ranks, compute the same tree of sums and end bitwise equal. A round is one step: combine what
// came and put the result to the next partner at once.
// All-gather (powers of two): what a rank has after round k are the 2^(k+1) adjacent blocks around
// its own.
//
// Cost: all-reduce  floor(log2 n) (alpha + S (beta + gamma))
//                   and, when n is not a power of two, 2 (alpha + S beta) + S gamma
//       all-gather  log2(n) alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

// The all-reduce's slots: rounds[k][r] is where r's partner of round k puts; beyond the power of
// two fold_in and fold_out.
struct Rounds {
  std::vector<std::vector<Slot>> rounds;
  std::vector<Slot> fold_in, fold_out;
};

Rounds make_rounds(Exchange& exchange, int ranks, int power) {
  Rounds slots;
  for (int extra = power; extra < ranks; ++extra) {
    slots.fold_in.push_back(exchange.slot(extra, extra - power));
    slots.fold_out.push_back(exchange.slot(extra - power, extra));
  }
  for (int bit = 1; bit < power; bit *= 2) {
    std::vector<Slot> round;
    for (int rank = 0; rank < power; ++rank) round.push_back(exchange.slot(rank ^ bit, rank));
    slots.rounds.push_back(std::move(round));
  }
  return slots;
}

// The rounds of one rank below the power of two.
void all_reduce_lane(PlanBuilder& plan, const Exchange& exchange, const Rounds& slots, int rank) {
  const int rounds = static_cast<int>(slots.rounds.size());
  const bool folds = rank < static_cast<int>(slots.fold_in.size());
  const auto outgoing = [&](int round) { return slots.rounds[round][rank ^ (1 << round)]; };
  LaneRef lane = plan.lane(rank);

  Ref partial = input(rank, 0);
  if (folds) {
    StepRef step =
        lane.reduce(0, {output(rank, 0), outgoing(0).ref()}, {partial, slots.fold_in[rank].ref()});
    exchange.take(step, slots.fold_in[rank]);
    exchange.fill(step, outgoing(0));
    partial = output(rank, 0);
  } else {
    exchange.fill(lane.copy(0, outgoing(0).ref(), partial), outgoing(0));
  }
  for (int k = 0; k < rounds; ++k) {
    const Slot& incoming = slots.rounds[k][rank];
    const bool lower = (rank & (1 << k)) == 0;
    std::vector<Ref> srcs = lower ? std::vector<Ref>{partial, incoming.ref()}
                                  : std::vector<Ref>{incoming.ref(), partial};
    std::vector<Ref> dsts{output(rank, 0)};
    if (k + 1 < rounds) dsts.push_back(outgoing(k + 1).ref());
    if (k + 1 == rounds && folds) dsts.push_back(slots.fold_out[rank].ref());
    StepRef step = lane.reduce(0, std::move(dsts), std::move(srcs));
    exchange.take(step, incoming);
    if (k + 1 < rounds) exchange.fill(step, outgoing(k + 1));
    if (k + 1 == rounds && folds) exchange.fill(step, slots.fold_out[rank]);
    partial = output(rank, 0);
  }
}

}  // namespace

Plan recursive_doubling_all_reduce(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("recursive-doubling", Collective::kAllReduce, params);
  const int power = floor_power_of_two(params.ranks);
  PlanBuilder plan("recursive-doubling", Collective::kAllReduce, params.ranks, -1, 1,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Rounds slots = make_rounds(exchange, params.ranks, power);
  for (int rank = 0; rank < power; ++rank) all_reduce_lane(plan, exchange, slots, rank);
  for (int extra = power; extra < params.ranks; ++extra) {
    const Slot& in = slots.fold_in[extra - power];
    const Slot& out = slots.fold_out[extra - power];
    LaneRef lane = plan.lane(extra);
    exchange.fill(lane.copy(0, in.ref(), input(extra, 0)), in);
    exchange.take(lane.copy(0, output(extra, 0), out.ref()), out);
  }
  return std::move(plan).build();
}

Plan recursive_doubling_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("recursive-doubling", Collective::kAllGather, params);
  PlanBuilder plan("recursive-doubling", Collective::kAllGather, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  for (int bit = 1; bit < n; bit *= 2) {
    std::vector<Slot> slots;  // at rank
    for (int rank = 0; rank < n; ++rank) slots.push_back(exchange.slot(rank ^ bit, rank, bit));
    for (int rank = 0; rank < n; ++rank) {
      const Slot& out = slots[rank ^ bit];
      const Slot& in = slots[rank];
      const int mine = rank & ~(bit - 1);
      LaneRef lane = plan.lane(rank);
      if (bit == 1) {
        exchange.fill(lane.copy(0, {out.ref(), output(rank, rank)}, input(rank, 0)), out);
      } else {
        exchange.fill(lane.copy(0, out.ref(), output(rank, mine)).span(bit), out);
      }
      exchange.take(lane.copy(0, output(rank, mine ^ bit), in.ref()).span(bit), in);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
