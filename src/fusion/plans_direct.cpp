// Direct exchanges driven by tiles: one hop, whatever the ranks.
//
//   sums         rank r sends its part of chunk d to d as soon as its tiles are there; d combines
//                all parts, its own among them, in the order of ranks, in one step
//                in any order: d adds the part of each peer to a slot of its own as it comes; when
//                all have, one step adds its own part, whose tiles are made last
//   all-reduce   that step puts the sum into a slot at every peer as well
//   all-gather   each rank puts its chunk into a slot at every peer
//   all-to-all   rank r puts the chunk for d into a slot at d
//
// Cost: sums: alpha + (n-1)/n S beta; the owner reads n parts and writes one. Each slot is read once.
#include "fusion/weaver.h"

namespace tessera {
namespace {

// [to][from][c]
using Slots = std::vector<std::vector<std::vector<Slot>>>;

Slots slots_between_all(Weaver& weaver) {
  const int n = weaver.ranks();
  Slots slots(static_cast<size_t>(n));
  for (int to = 0; to < n; ++to) {
    slots[to].resize(static_cast<size_t>(n));
    for (int from = 0; from < n; ++from)
      if (from != to) slots[to][from] = weaver.slots(from, to);
  }
  return slots;
}

// Each chunk of the input to the rank that it belongs to; hops first that are far from the own.
void send_all(Weaver& weaver, const Slots& slots, int rank) {
  const int n = weaver.ranks();
  for (int s = 0; s + 1 < n; ++s) {
    const int to = wrap(rank - 1 - s, n);
    for (int c = weaver.chunks() - 1; c >= 0; --c) {
      const Slot& slot = slots[to][rank][c];
      const int chunk = weaver.in_matrix(to, c);
      StepRef step =
          weaver.lane(rank, to, c).copy(weaver.in_block(to, c), slot.ref(), input(rank, chunk));
      weaver.await_tiles(step, chunk);
      weaver.send(step, slot, c);
    }
  }
}

// What came from every peer into the output.
void receive_all(Weaver& weaver, const Slots& slots, int rank) {
  const int n = weaver.ranks();
  for (int s = 0; s + 1 < n; ++s) {
    const int from = wrap(rank - 1 - s, n);
    for (int c = weaver.chunks() - 1; c >= 0; --c) {
      const Slot& slot = slots[rank][from][c];
      const int chunk = weaver.in_matrix(from, c);
      StepRef step = weaver.lane(rank, from, c)
                         .copy(weaver.in_block(from, c), output(rank, chunk), slot.ref());
      weaver.exchange().take(step, slot);
      weaver.tell_landed(step, rank, chunk);
    }
  }
}

// The same whatever order parts come in.
void sum_as_parts_come(Weaver& weaver, const Slots& slots, const Slots* back, int rank, int c) {
  const int n = weaver.ranks(), chunk = weaver.in_matrix(rank, c), piece = weaver.in_block(rank, c);
  const Weaver::Sum sum = weaver.sum(rank);
  for (int s = 0; s + 1 < n; ++s) {
    const int from = wrap(rank - 1 - s, n);
    const Slot& slot = slots[rank][from][c];
    StepRef step =
        weaver.adding_lane(rank, from, c).accumulate(piece, sum.slot, slot.ref(), sum.tally);
    weaver.exchange().take(step, slot);
    step.wait(sum.read, 1, 1);
  }
  std::vector<Ref> dsts{weaver.result(rank, c)};
  for (int to = 0; back != nullptr && to < n; ++to)
    if (to != rank) dsts.push_back((*back)[to][rank][c].ref());
  StepRef last = weaver.lane(rank, rank, c).reduce(piece, dsts, {sum.slot, input(rank, chunk)});
  last.wait(sum.tally, static_cast<uint32_t>(n - 1)).signal(rank, sum.read);
  weaver.await_tiles(last, chunk);
  for (int to = 0; back != nullptr && to < n; ++to)
    if (to != rank) weaver.exchange().fill(last, (*back)[to][rank][c]);
  weaver.tell_landed(last, rank, dsts[0].chunk);
}

// The sum of a chunk at its owner; `back`: slots for it at every peer, or null.
void sum(Weaver& weaver, const Slots& slots, const Slots* back, int rank, int c) {
  const int chunk = weaver.in_matrix(rank, c);
  std::vector<Ref> srcs, dsts{weaver.result(rank, c)};
  if (weaver.any_order()) return sum_as_parts_come(weaver, slots, back, rank, c);
  for (int from = 0; from < weaver.ranks(); ++from)
    srcs.push_back(from == rank ? input(rank, chunk) : slots[rank][from][c].ref());
  for (int to = 0; back != nullptr && to < weaver.ranks(); ++to)
    if (to != rank) dsts.push_back((*back)[to][rank][c].ref());
  StepRef step = weaver.lane(rank, rank, c).reduce(weaver.in_block(rank, c), dsts, srcs);
  weaver.await_tiles(step, chunk);
  for (int peer = 0; peer < weaver.ranks(); ++peer) {
    if (peer == rank) continue;
    weaver.exchange().take(step, slots[rank][peer][c]);
    if (back != nullptr) weaver.exchange().fill(step, (*back)[peer][rank][c]);
  }
  weaver.tell_landed(step, rank, dsts[0].chunk);
}

}  // namespace

void weave_direct_sums(Weaver& weaver) {
  const Slots slots = slots_between_all(weaver);
  const Slots back = weaver.returns() ? slots_between_all(weaver) : Slots();
  for (int rank = 0; rank < weaver.ranks(); ++rank) {
    send_all(weaver, slots, rank);
    for (int c = weaver.chunks() - 1; c >= 0; --c)
      sum(weaver, slots, weaver.returns() ? &back : nullptr, rank, c);
    if (weaver.returns()) receive_all(weaver, back, rank);
  }
}

void weave_direct_gather(Weaver& weaver) {
  const Slots slots = slots_between_all(weaver);
  for (int rank = 0; rank < weaver.ranks(); ++rank) {
    for (int c = weaver.chunks() - 1; c >= 0; --c) {
      const int chunk = weaver.in_matrix(rank, c);
      std::vector<Ref> dsts{output(rank, chunk)};
      for (int to = 0; to < weaver.ranks(); ++to)
        if (to != rank) dsts.push_back(slots[to][rank][c].ref());
      StepRef step = weaver.lane(rank, rank, c).copy(c, std::move(dsts), input(rank, c));
      for (int to = 0; to < weaver.ranks(); ++to)
        if (to != rank) weaver.exchange().fill(step, slots[to][rank][c]);
      weaver.tell_landed(step, rank, chunk);
    }
    receive_all(weaver, slots, rank);
  }
}

void weave_all_to_all(Weaver& weaver) {
  const Slots slots = slots_between_all(weaver);
  for (int rank = 0; rank < weaver.ranks(); ++rank) {
    send_all(weaver, slots, rank);
    for (int c = weaver.chunks() - 1; c >= 0; --c) {
      const int chunk = weaver.in_matrix(rank, c);
      StepRef step = weaver.lane(rank, rank, c).copy(c, output(rank, chunk), input(rank, chunk));
      weaver.await_tiles(step, chunk);
      weaver.tell_landed(step, rank, chunk);
    }
    receive_all(weaver, slots, rank);
  }
}

}  // namespace tessera
