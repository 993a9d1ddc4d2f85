// Dissemination barrier: in round k every rank tells the rank 2^k further on, and waits to be told
// by the rank 2^k before it.
//
//      5 ranks    0->1 1->2 2->3 3->4 4->0      a rank knows of 1 rank before it,
//                 0->2 1->3 2->4 3->0 4->1      of 3,
//                 0->4 1->0 2->1 3->2 4->3      of all
//
// Waiting for one round and telling the next is one step.
//
// Cost: ceil(log2 n) alpha
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {

Plan dissemination_barrier(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("dissemination", Collective::kBarrier, params);
  PlanBuilder plan("dissemination", Collective::kBarrier, n, -1, 1, 1);
  std::vector<int> told(n, -1);  // of the round before
  for (int distance = 1; distance < n; distance *= 2) {
    std::vector<int> now(n);
    for (int rank = 0; rank < n; ++rank) now[rank] = plan.counter(rank);
    for (int rank = 0; rank < n; ++rank) {
      StepRef step = plan.lane(rank).sync();
      if (told[rank] >= 0) step.wait(told[rank]);
      const int to = (rank + distance) % n;
      step.signal(to, now[to]);
    }
    told = std::move(now);
  }
  for (int rank = 0; rank < n; ++rank) plan.lane(rank).sync().wait(told[rank]);
  return std::move(plan).build();
}

}  // namespace tessera
