// Rings driven by tiles. Sums of chunk d start at rank d + 1 and end at d, each rank adding what its
// tiles hold; d's neighbours see the stages of T3, one rank apart:
//
//        rank 0           rank 1           rank 2           rank 3        tiles made in the order
//   s=0  d3 --->          d0 --->          d1 --->          d2 --->       rank - 1, rank - 2, ...
//   s=1  add, d2 --->     add, d3 --->     add, d0 --->     add, d1 --->
//   s=2  add, d1 --->     add, d2 --->     add, d3 --->     add, d0 --->
//   s=3  add: d0 done     add: d1 done     add: d2 done     add: d3 done
//
// Every hop of every chunk has a slot of its own. All-reduce: the step that finishes a chunk puts
// it into the slot of the first hop of its way back, which is an all-gather's.
//
// Cost: n chunks of g compute each, t transfer each: max(n g, (n-1) t + max(0, 2 g - t)) for t > g,
//       n g else (reduce-scatter; S/n bytes per hop).
#include "fusion/weaver.h"

namespace tessera {
namespace {

// [rank][hop][c]: slots filled by the rank's left neighbour.
using Hops = std::vector<std::vector<std::vector<Slot>>>;

Hops make_hops(Weaver& weaver) {
  const int n = weaver.ranks();
  Hops hops(static_cast<size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    for (int s = 0; s + 1 < n; ++s) hops[rank].push_back(weaver.slots(wrap(rank - 1, n), rank));
  }
  return hops;
}

// Hop s of chunk c at a rank. `back`: slots of the way back, or null.
void add_and_pass(Weaver& weaver, const Hops& hops, const Hops* back, int rank, int s, int c) {
  const int n = weaver.ranks(), right = (rank + 1) % n;
  const int owner = wrap(rank - 1 - s, n), chunk = weaver.in_matrix(owner, c);
  std::vector<Ref> srcs, dsts;
  if (s > 0) srcs.push_back(hops[rank][s - 1][c].ref());
  srcs.push_back(input(rank, chunk));
  const Slot* out = nullptr;
  if (s == n - 1) {
    dsts.push_back(weaver.result(rank, c));
    if (back != nullptr && n > 1) out = &(*back)[right][0][c];
  } else {
    out = &hops[right][s][c];
  }
  if (out != nullptr) dsts.push_back(out->ref());
  LaneRef lane = weaver.lane(rank, owner, c);
  const int piece = weaver.in_block(owner, c);
  StepRef step = s == 0 && n > 1 ? lane.copy(piece, dsts, srcs[0]) : lane.reduce(piece, dsts, srcs);
  if (s > 0) weaver.exchange().take(step, hops[rank][s - 1][c]);
  weaver.await_tiles(step, chunk);
  if (out != nullptr && s == 0 && n > 1)
    weaver.send(step, *out, c);
  else if (out != nullptr)
    weaver.exchange().fill(step, *out);
  if (s == n - 1) weaver.tell_landed(step, rank, weaver.result(rank, c).chunk);
}

// Hop s of chunk c on its way round: kept, and passed on but for the last hop.
void keep_and_pass(Weaver& weaver, const Hops& hops, int rank, int s, int c) {
  const int n = weaver.ranks(), right = (rank + 1) % n;
  const int owner = wrap(rank - 1 - s, n), chunk = weaver.in_matrix(owner, c);
  std::vector<Ref> dsts{output(rank, chunk)};
  const bool passes = s + 2 < n;
  if (passes) dsts.push_back(hops[right][s + 1][c].ref());
  const Slot& in = hops[rank][s][c];
  StepRef step =
      weaver.lane(rank, owner, c).copy(weaver.in_block(owner, c), std::move(dsts), in.ref());
  weaver.exchange().take(step, in);
  if (passes) weaver.exchange().fill(step, hops[right][s + 1][c]);
  weaver.tell_landed(step, rank, chunk);
}

void gather(Weaver& weaver, const Hops& hops, int rank) {
  for (int s = 0; s + 1 < weaver.ranks(); ++s)
    for (int c = weaver.chunks() - 1; c >= 0; --c) keep_and_pass(weaver, hops, rank, s, c);
}

}  // namespace

void weave_ring_sums(Weaver& weaver) {
  const Hops hops = make_hops(weaver);
  const Hops back = weaver.returns() ? make_hops(weaver) : Hops();
  for (int rank = 0; rank < weaver.ranks(); ++rank) {
    for (int s = 0; s < weaver.ranks(); ++s)
      for (int c = weaver.chunks() - 1; c >= 0; --c)
        add_and_pass(weaver, hops, weaver.returns() ? &back : nullptr, rank, s, c);
    if (weaver.returns()) gather(weaver, back, rank);
  }
}

void weave_ring_gather(Weaver& weaver) {
  const Hops hops = make_hops(weaver);
  const int n = weaver.ranks();
  for (int rank = 0; rank < n; ++rank) {
    for (int c = weaver.chunks() - 1; c >= 0; --c) {
      const int chunk = weaver.in_matrix(rank, c);
      std::vector<Ref> dsts{output(rank, chunk)};
      if (n > 1) dsts.push_back(hops[(rank + 1) % n][0][c].ref());
      StepRef step = weaver.lane(rank, rank, c).copy(c, std::move(dsts), input(rank, c));
      if (n > 1) weaver.exchange().fill(step, hops[(rank + 1) % n][0][c]);
      weaver.tell_landed(step, rank, chunk);
    }
    gather(weaver, hops, rank);
  }
}

}  // namespace tessera
