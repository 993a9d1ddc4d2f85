// Recursive halving and doubling.
//
// Halving (reduce-scatter): with the partner across the highest bit, a rank splits the data in two
// halves and sends the half that is not its own; with the next bit it splits its half again, until
// it is left with its own chunk.
// Doubling (all-gather): the same partners in reverse order; what a rank has doubles with every
// round.
//
//      4 ranks     rank 0        rank 1        rank 2        rank 3
//      halving     sends 2,3     sends 2,3     sends 0,1     sends 0,1      0 <-> 2, 1 <-> 3
//                  sends 1       sends 0       sends 3       sends 2        0 <-> 1, 2 <-> 3
//                  owns 0        owns 1        owns 2        owns 3
//      doubling    sends 0       sends 1       sends 2       sends 3        0 <-> 1, 2 <-> 3
//                  sends 0,1     sends 0,1     sends 2,3     sends 2,3      0 <-> 2, 1 <-> 3
//
// Sums are made late: what came stays in its slot until the half that it belongs to is sent or kept
// for good, and then all contributions are combined in one step. So nothing is stored in between,
// and each chunk is finished at one rank only.
// Ranks beyond the largest power of two P give their input to a partner first and get the result
// from it last.
//
// Cost: all-reduce      2 log2(P) alpha + 2 (P-1)/P S beta + (P-1)/P S gamma
//                       and, if n > P, 2 (alpha + S beta) + S gamma
//       reduce-scatter  log2(n) alpha + (n-1)/n S (beta + gamma), n a power of two
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

// A slot that holds partial sums of the chunks from `begin` on.
struct Partial {
  Slot slot;
  int begin = 0;
};

// What one rank has got so far.
struct Halving {
  std::vector<Partial> partials;
};

// All contributions that `rank` has to the run of chunks at `begin`: its own and those in its
// slots.
std::vector<Ref> contributions(const Halving& state, int rank, int begin) {
  std::vector<Ref> srcs{input(rank, begin)};
  for (const Partial& partial : state.partials) {
    srcs.push_back(partial.slot.ref(begin - partial.begin));
  }
  return srcs;
}

// Combines the contributions of `rank` to a run of chunks into dsts. Called once after each slot
// has been added, so it is the first to read the last one.
StepRef combine(LaneRef lane, const Exchange& exchange, const Halving& state, int rank, int chunk,
                int begin, int count, std::vector<Ref> dsts) {
  std::vector<Ref> srcs = contributions(state, rank, begin);
  StepRef step = srcs.size() == 1 ? lane.copy(chunk, std::move(dsts), srcs[0])
                                  : lane.reduce(chunk, std::move(dsts), std::move(srcs));
  step.span(count);
  if (!state.partials.empty()) exchange.await(step, state.partials.back().slot);
  return step;
}

// All rounds of halving among `power` ranks, up to the step that finishes each rank's own chunk.
// `blocks` tells whether the pieces are blocks (of one chunk each) or the chunks of the one block.
void halve(PlanBuilder& plan, Exchange& exchange, int power, bool blocks,
           std::vector<Halving>& states) {
  for (int bit = power / 2; bit >= 1; bit /= 2) {
    std::vector<Slot> incoming(power);
    for (int rank = 0; rank < power; ++rank) {
      const int partner = rank ^ bit;
      const int begin = partner & ~(bit - 1);  // the half that the partner keeps
      const Slot slot = exchange.slot(rank, partner, bit);
      exchange.fill(combine(plan.lane(rank), exchange, states[rank], rank, blocks ? 0 : begin,
                            begin, bit, {slot.ref()}),
                    slot);
      incoming[partner] = slot;
    }
    for (int rank = 0; rank < power; ++rank) {
      states[rank].partials.push_back({incoming[rank], rank & ~(bit - 1)});
    }
  }
}

// The step that finishes `rank`'s own chunk; after it no slot of the halving is needed any more.
StepRef finish(PlanBuilder& plan, const Exchange& exchange, const Halving& state, int rank,
               int chunk, std::vector<Ref> dsts) {
  StepRef step = combine(plan.lane(rank), exchange, state, rank, chunk, rank, 1, std::move(dsts));
  for (const Partial& partial : state.partials) exchange.release(step, partial.slot);
  return step;
}

// Finishes each rank's own chunk and spreads the results; the last round goes to the folded ranks,
// if any.
void double_up(PlanBuilder& plan, Exchange& exchange, int power,
               const std::vector<Halving>& states) {
  for (int bit = 1; bit < power; bit *= 2) {
    std::vector<Slot> slots;  // at rank
    for (int rank = 0; rank < power; ++rank) slots.push_back(exchange.slot(rank ^ bit, rank, bit));
    for (int rank = 0; rank < power; ++rank) {
      const int mine = rank & ~(bit - 1);
      const Slot& out = slots[rank ^ bit];
      const Slot& in = slots[rank];
      LaneRef lane = plan.lane(rank);
      if (bit == 1) {
        exchange.fill(
            finish(plan, exchange, states[rank], rank, rank, {out.ref(), output(rank, rank)}), out);
      } else {
        exchange.fill(lane.copy(mine, out.ref(), output(rank, mine)).span(bit), out);
      }
      const int theirs = mine ^ bit;
      exchange.take(lane.copy(theirs, output(rank, theirs), in.ref()).span(bit), in);
    }
  }
}

}  // namespace

Plan halving_doubling_all_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("halving-doubling", Collective::kAllReduce, params);
  const int power = floor_power_of_two(n);
  PlanBuilder plan("halving-doubling", Collective::kAllReduce, n, -1, power, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));

  std::vector<Halving> states(power);
  for (int extra = power; extra < n; ++extra) {
    const Slot slot = exchange.slot(extra, extra - power, power);
    exchange.fill(plan.lane(extra).copy(0, slot.ref(), input(extra, 0)).span(power), slot);
    states[extra - power].partials.push_back({slot, 0});
  }
  halve(plan, exchange, power, false, states);
  double_up(plan, exchange, power, states);
  for (int extra = power; extra < n; ++extra) {
    const int partner = extra - power;
    const Slot slot = exchange.slot(partner, extra, power);
    exchange.fill(plan.lane(partner).copy(0, slot.ref(), output(partner, 0)).span(power), slot);
    exchange.take(plan.lane(extra).copy(0, output(extra, 0), slot.ref()).span(power), slot);
  }
  return std::move(plan).build();
}

Plan recursive_halving_reduce_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("recursive-halving", Collective::kReduceScatter, params);
  PlanBuilder plan("recursive-halving", Collective::kReduceScatter, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  std::vector<Halving> states(n);
  halve(plan, exchange, n, true, states);
  for (int rank = 0; rank < n; ++rank) {
    finish(plan, exchange, states[rank], rank, 0, {output(rank, 0)});
  }
  return std::move(plan).build();
}

}  // namespace tessera
