// Puts: data goes from the owner's input straight into peers' outputs, without scratch; nobody reads
// what is a peer's. For peers that can be written but not read: behind a port, on another host.
//
//      all-gather, 3 ranks      rank r   input --> output block r of 0, 1, 2
//      all-to-all               rank r   input block s --> output block r of s
//      broadcast, scatter       root     input (block s) --> output of s
//      gather                   rank r   input --> output block r of root
//
// A rank writes into a peer's output after the peer has entered, and leaves when all that is written
// into its own has come.
//
// Cost: all-gather, all-to-all  2 alpha + (n-1)/n S beta     send/recv  2 alpha + S beta
//       broadcast  2 alpha + (n-1) S beta                    gather, scatter  2 alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/visits.h"

namespace tessera {
namespace {

constexpr const char* kName = "put";

// One put of a block by `rank`, or one copy if both ends are its own.
void put_block(PlanBuilder& plan, const Visits& visits, int rank, Ref dst, Ref src) {
  StepRef step = plan.lane(rank).copy(0, dst, src);
  if (dst.rank == rank) return;
  visits.begin(step, rank, dst.rank);
  visits.end(step, rank, dst.rank);
}

}  // namespace

Plan put_all_to_all(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kName, Collective::kAllToAll, params);
  PlanBuilder plan(kName, Collective::kAllToAll, n, -1, 1, 1);
  Visits visits(plan, n);
  visits.allow_all();
  visits.enter();
  for (int rank = 0; rank < n; ++rank) {
    for (int s = 1; s <= n; ++s) {  // the own block last: it needs no peer
      const int to = (rank + s) % n;
      put_block(plan, visits, rank, output(to, rank), input(rank, to));
    }
  }
  visits.leave();
  return std::move(plan).build();
}

Plan put_broadcast(const AlgorithmParams& params) {
  const int n = params.ranks, root = params.root;
  if (n == 1) return alone(kName, Collective::kBroadcast, params);
  PlanBuilder plan(kName, Collective::kBroadcast, n, root, 1, 1);
  Visits visits(plan, n);
  for (int s = 1; s < n; ++s) visits.allow(root, (root + s) % n);
  visits.enter();
  for (int s = 1; s <= n; ++s)
    put_block(plan, visits, root, output((root + s) % n, 0), input(root, 0));
  visits.leave();
  return std::move(plan).build();
}

Plan put_gather(const AlgorithmParams& params) {
  const int n = params.ranks, root = params.root;
  if (n == 1) return alone(kName, Collective::kGather, params);
  PlanBuilder plan(kName, Collective::kGather, n, root, 1, 1);
  Visits visits(plan, n);
  for (int s = 1; s < n; ++s) visits.allow((root + s) % n, root);
  visits.enter();
  for (int s = 0; s < n; ++s) {
    const int rank = (root + s) % n;
    put_block(plan, visits, rank, output(root, rank), input(rank, 0));
  }
  visits.leave();
  return std::move(plan).build();
}

Plan put_scatter(const AlgorithmParams& params) {
  const int n = params.ranks, root = params.root;
  if (n == 1) return alone(kName, Collective::kScatter, params);
  PlanBuilder plan(kName, Collective::kScatter, n, root, 1, 1);
  Visits visits(plan, n);
  for (int s = 1; s < n; ++s) visits.allow(root, (root + s) % n);
  visits.enter();
  for (int s = 1; s <= n; ++s) {
    const int to = (root + s) % n;
    put_block(plan, visits, root, output(to, 0), input(root, to));
  }
  visits.leave();
  return std::move(plan).build();
}

Plan put_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kName, Collective::kAllGather, params);
  PlanBuilder plan(kName, Collective::kAllGather, n, -1, 1, 1);
  Visits visits(plan, n);
  visits.allow_all();
  visits.enter();
  for (int rank = 0; rank < n; ++rank) {
    for (int s = 1; s <= n; ++s)
      put_block(plan, visits, rank, output((rank + s) % n, rank), input(rank, 0));
  }
  visits.leave();
  return std::move(plan).build();
}

Plan put_send_recv(const AlgorithmParams&) {
  PlanBuilder plan(kName, Collective::kSendRecv, 2, -1, 1, 1);
  Visits visits(plan, 2);
  visits.allow(0, 1);
  visits.enter();
  put_block(plan, visits, 0, output(1, 0), input(0, 0));
  visits.leave();
  return std::move(plan).build();
}

}  // namespace tessera
