// Pairwise all-to-all: in step s every rank sends to the rank s further on and receives from the
// rank s before it.
//
//      4 ranks    s=1  0->1 1->2 2->3 3->0       every link carries one message at a time,
//                 s=2  0->2 1->3 2->0 3->1       and each message goes straight to where it belongs
//                 s=3  0->3 1->0 2->1 3->2
//
// Only a few slots are used, one after the other: a sender waits until the receiver has emptied the
// slot of kWindow steps ago.
//
// Cost: (n-1) (alpha + S/n beta). Bytes sent by a rank: the optimum.
// Scratch: at most kWindow blocks.
#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

constexpr int kWindow = 4;

}  // namespace

Plan pairwise_all_to_all(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("pairwise", Collective::kAllToAll, params);
  const int window = std::min(kWindow, n - 1);
  const bool single_copy = params.scratch_depth < 2;
  PlanBuilder plan("pairwise", Collective::kAllToAll, n, -1, 1, params.scratch_depth);

  // [s], the same numbers at every rank, for the plan rotates: "the message of step s is here", and
  // "the slot of my message of step s is free".
  std::vector<int> arrived(n), free(n);
  int first_slot = 0;
  for (int rank = 0; rank < programs(params); ++rank) {
    first_slot = plan.scratch(rank, window);
    for (int s = 1; s < n; ++s) {
      arrived[s] = plan.counter(rank);
      if (s > window || single_copy) free[s] = plan.counter(rank);
    }
  }
  const auto slot = [&](int rank, int s) {
    return Ref{rank, Buffer::kScratch, first_slot + (s - 1) % window};
  };
  for (int rank = 0; rank < programs(params); ++rank) {
    LaneRef lane = plan.lane(rank);
    lane.copy(0, output(rank, rank), input(rank, rank));
    for (int s = 1; s < n; ++s) {
      const int to = (rank + s) % n;
      const int from = (rank - s + n) % n;
      StepRef put = lane.copy(0, slot(to, s), input(rank, to));
      if (s > window) {
        put.wait(free[s]);
      } else if (single_copy) {
        put.wait(free[s], 1, 1);
      }
      put.signal(to, arrived[s]);
      StepRef take = lane.copy(0, output(rank, from), slot(rank, s)).wait(arrived[s]);
      // Who fills this slot next: in this pass, or else (with one copy of scratch) in the next.
      int next = s + window;
      if (next >= n) {
        if (!single_copy) continue;
        next = (s - 1) % window + 1;
      }
      const int sender = wrap(rank - next, n);
      take.signal(sender, free[next]);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
