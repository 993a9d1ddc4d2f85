// Direct moves: data goes from one user buffer to another at once, without scratch.
//
// All-gather: a rank writes its block into all outputs in one step, so that the block is read from
// memory once. In place this works too: block r of every output is written by rank r alone.
// All-to-all: a rank reads the blocks meant for it; all ranks do the same work.
// With a root (broadcast, gather, scatter) a root that did all the work would let its peers idle,
// and so would peers that did all of it. Each block is cut in n chunks: the root moves chunk 0 of
// every peer's data, the peers move their other n - 1 chunks.
//
// A broadcast whose root has a copy of its own to make (not in place) is better balanced when the
// peers move everything: "direct-get".
//
//      broadcast, 3 ranks       root   [c0 c1 c2]
//                               writes c0 ---> both peers     each peer reads c1, c2
//
// Cost: all-gather  2 alpha + (n-1)/n S beta        broadcast  2 alpha + (n-1)/n S beta
//       all-to-all  2 alpha + (n-1)/n S beta        gather, scatter  2 alpha + (n-1)/n^2 S beta
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/visits.h"

namespace tessera {
namespace {

constexpr const char* kDirectMoveName = "direct";
constexpr const char* kGetName = "direct-get";

// Root and peers touch each other's buffers.
void allow_with_root(Visits& visits, int root, int n) {
  for (int s = 1; s < n; ++s) {
    const int peer = (root + s) % n;
    visits.allow(peer, root);
    visits.allow(root, peer);
  }
}

}  // namespace

Plan direct_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kDirectMoveName, Collective::kAllGather, params);
  PlanBuilder plan(kDirectMoveName, Collective::kAllGather, n, -1, 1, 1);
  Visits visits(plan, n);
  visits.allow_all();
  visits.enter();
  for (int rank = 0; rank < n; ++rank) {
    std::vector<Ref> dsts;
    for (int s = 0; s < n; ++s) dsts.push_back(output((rank + s) % n, rank));
    StepRef step = plan.lane(rank).copy(0, std::move(dsts), input(rank, 0));
    for (int s = 1; s < n; ++s) {
      visits.begin(step, rank, (rank + s) % n);
      visits.end(step, rank, (rank + s) % n);
    }
  }
  visits.leave();
  return std::move(plan).build();
}

Plan direct_all_to_all(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kDirectMoveName, Collective::kAllToAll, params);
  PlanBuilder plan(kDirectMoveName, Collective::kAllToAll, n, -1, 1, 1);
  Visits visits(plan, n);
  visits.allow_all();
  visits.enter();
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    for (int s = 1; s < n; ++s) {
      const int from = (rank - s + n) % n;
      StepRef step = lane.copy(0, output(rank, from), input(from, rank));
      visits.begin(step, rank, from);
      visits.end(step, rank, from);
    }
    lane.copy(0, output(rank, rank), input(rank, rank));  // nobody waits for it
  }
  visits.leave();
  return std::move(plan).build();
}

Plan direct_broadcast(const AlgorithmParams& params) {
  const int n = params.ranks;
  const int root = params.root;
  if (n == 1) return alone(kDirectMoveName, Collective::kBroadcast, params);
  PlanBuilder plan(kDirectMoveName, Collective::kBroadcast, n, root, n, 1);
  Visits visits(plan, n);
  allow_with_root(visits, root, n);
  visits.enter();

  std::vector<Ref> dsts{output(root, 0)};
  for (int s = 1; s < n; ++s) dsts.push_back(output((root + s) % n, 0));
  StepRef put = plan.lane(root).copy(0, std::move(dsts), input(root, 0));
  plan.lane(root).copy(1, output(root, 1), input(root, 1)).span(n - 1);
  for (int s = 1; s < n; ++s) {
    const int peer = (root + s) % n;
    visits.begin(put, root, peer);
    visits.end(put, root, peer);
    StepRef get = plan.lane(peer).copy(1, output(peer, 1), input(root, 1)).span(n - 1);
    visits.begin(get, peer, root);
    visits.end(get, peer, root);
  }
  visits.leave();
  return std::move(plan).build();
}

Plan direct_get_broadcast(const AlgorithmParams& params) {
  const int n = params.ranks;
  const int root = params.root;
  if (n == 1) return alone(kGetName, Collective::kBroadcast, params);
  PlanBuilder plan(kGetName, Collective::kBroadcast, n, root, 1, 1);
  Visits visits(plan, n);
  for (int s = 1; s < n; ++s) visits.allow((root + s) % n, root);
  visits.enter();
  for (int s = 1; s < n; ++s) {
    const int peer = (root + s) % n;
    StepRef get = plan.lane(peer).copy(0, output(peer, 0), input(root, 0));
    visits.begin(get, peer, root);
    visits.end(get, peer, root);
  }
  plan.lane(root).copy(0, output(root, 0), input(root, 0));
  visits.leave();
  return std::move(plan).build();
}

namespace {

// Gather and scatter: the block of each peer lies at the root in block `peer`, and alone at the
// peer. Moves it from `src` to `dst`, both given by their first chunk: the root moves chunk 0, the
// peer the others.
void share_move(PlanBuilder& plan, Visits& visits, int root, int peer, Ref dst, Ref src) {
  StepRef by_root = plan.lane(root).copy(0, dst, src);
  visits.begin(by_root, root, peer);
  visits.end(by_root, root, peer);
  const int n = visits.ranks();
  const Ref dst_rest{dst.rank, dst.buffer, dst.chunk + 1};
  const Ref src_rest{src.rank, src.buffer, src.chunk + 1};
  StepRef by_peer = plan.lane(peer).copy(1, dst_rest, src_rest).span(n - 1);
  visits.begin(by_peer, peer, root);
  visits.end(by_peer, peer, root);
}

}  // namespace

Plan direct_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  const int root = params.root;
  if (n == 1) return alone(kDirectMoveName, Collective::kGather, params);
  PlanBuilder plan(kDirectMoveName, Collective::kGather, n, root, n, 1);
  Visits visits(plan, n);
  allow_with_root(visits, root, n);
  visits.enter();
  for (int s = 1; s < n; ++s) {
    const int peer = (root + s) % n;
    share_move(plan, visits, root, peer, output(root, peer * n), input(peer, 0));
  }
  plan.lane(root).copy(0, output(root, root * n), input(root, 0)).span(n);
  visits.leave();
  return std::move(plan).build();
}

Plan direct_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  const int root = params.root;
  if (n == 1) return alone(kDirectMoveName, Collective::kScatter, params);
  PlanBuilder plan(kDirectMoveName, Collective::kScatter, n, root, n, 1);
  Visits visits(plan, n);
  allow_with_root(visits, root, n);
  visits.enter();
  for (int s = 1; s < n; ++s) {
    const int peer = (root + s) % n;
    share_move(plan, visits, root, peer, output(peer, 0), input(root, peer * n));
  }
  plan.lane(root).copy(0, output(root, 0), input(root, root * n)).span(n);
  visits.leave();
  return std::move(plan).build();
}

}  // namespace tessera
