// One-hop exchanges with a root: the root and each of its peers talk directly.
//
//      broadcast, scatter                 reduce, gather
//             root                             root
//           /  |  \                        ^   ^   ^
//          v   v   v                       |   |   |
//         p1   p2   p3                     p1  p2  p3
//
// The reduce adds in0 + in1 + ... in rank order, whichever comes first.
// Data flows one way, so a sender may run ahead of its receivers; credits bound by how much.
//
// Cost: broadcast  alpha + (n-1) S beta            reduce   alpha + (n-1) S (beta + gamma)
//       scatter    alpha + (n-1)/n S beta          gather   alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

PlanBuilder rooted(Collective collective, const AlgorithmParams& params) {
  return PlanBuilder("one-hop", collective, params.ranks, params.root, 1, params.scratch_depth);
}

// The slot of each peer, at the peer or at the root; that of the root itself stays unused.
std::vector<Slot> slots_of_peers(Exchange& exchange, const AlgorithmParams& params, bool at_root) {
  std::vector<Slot> slots(params.ranks);
  for (int peer = 0; peer < params.ranks; ++peer) {
    if (peer == params.root) continue;
    slots[peer] = at_root ? exchange.slot(peer, params.root) : exchange.slot(params.root, peer);
  }
  return slots;
}

}  // namespace

Plan one_hop_broadcast(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kBroadcast, params);
  PlanBuilder plan = rooted(Collective::kBroadcast, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const std::vector<Slot> slots = slots_of_peers(exchange, params, false);

  std::vector<Ref> dsts;
  for (int s = 1; s < params.ranks; ++s) {
    dsts.push_back(slots[(params.root + s) % params.ranks].ref());
  }
  dsts.push_back(output(params.root, 0));
  StepRef put = plan.lane(params.root).copy(0, std::move(dsts), input(params.root, 0));
  for (int peer = 0; peer < params.ranks; ++peer) {
    if (peer == params.root) continue;
    exchange.fill(put, slots[peer]);
    exchange.take(plan.lane(peer).copy(0, output(peer, 0), slots[peer].ref()), slots[peer]);
  }
  return std::move(plan).build();
}

Plan one_hop_reduce(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kReduce, params);
  PlanBuilder plan = rooted(Collective::kReduce, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const std::vector<Slot> slots = slots_of_peers(exchange, params, true);

  std::vector<Ref> srcs;
  for (int from = 0; from < params.ranks; ++from) {
    srcs.push_back(from == params.root ? input(from, 0) : slots[from].ref());
  }
  StepRef sum = plan.lane(params.root).reduce(0, {output(params.root, 0)}, std::move(srcs));
  for (int peer = 0; peer < params.ranks; ++peer) {
    if (peer == params.root) continue;
    exchange.fill(plan.lane(peer).copy(0, slots[peer].ref(), input(peer, 0)), slots[peer]);
    exchange.take(sum, slots[peer]);
  }
  return std::move(plan).build();
}

Plan one_hop_gather(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kGather, params);
  PlanBuilder plan = rooted(Collective::kGather, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const std::vector<Slot> slots = slots_of_peers(exchange, params, true);

  LaneRef root = plan.lane(params.root);
  root.copy(0, output(params.root, params.root), input(params.root, 0));
  for (int s = 1; s < params.ranks; ++s) {
    const int peer = (params.root + s) % params.ranks;
    exchange.fill(plan.lane(peer).copy(0, slots[peer].ref(), input(peer, 0)), slots[peer]);
    exchange.take(root.copy(0, output(params.root, peer), slots[peer].ref()), slots[peer]);
  }
  return std::move(plan).build();
}

Plan one_hop_scatter(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("one-hop", Collective::kScatter, params);
  PlanBuilder plan = rooted(Collective::kScatter, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const std::vector<Slot> slots = slots_of_peers(exchange, params, false);

  LaneRef root = plan.lane(params.root);
  for (int s = 1; s < params.ranks; ++s) {
    const int peer = (params.root + s) % params.ranks;
    exchange.fill(root.copy(0, slots[peer].ref(), input(params.root, peer)), slots[peer]);
    exchange.take(plan.lane(peer).copy(0, output(peer, 0), slots[peer].ref()), slots[peer]);
  }
  root.copy(0, output(params.root, 0), input(params.root, params.root));
  return std::move(plan).build();
}

}  // namespace tessera
