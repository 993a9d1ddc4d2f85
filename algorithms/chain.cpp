// Pipelined chains: broadcast and reduce along the ring (of AlgorithmParams::order), cut at the root.
//
//      broadcast   root --c0,c1,..--> root+1 --c0,c1,..--> ... --> root-1    keep a copy, pass on
//      reduce      root+1 --> root+2 --> ... --> root-1 --> root             add own input, pass on
//
// The data flows in m chunks, so that all links are busy at the same time; a rank passes chunk i on
// while chunk i + 1 is on its way to it. Every byte crosses each link once. Latency grows with n.
//
// Cost: broadcast  (n-2+m) (alpha + S/m beta)         reduce  (n-2+m) (alpha + S/m (beta + gamma))
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"
#include "algorithms/places.h"

namespace tessera {
namespace {

constexpr const char* kChainName = "ring";

// [i][c]: the slot for chunk c at position i + 1 of the chain, which starts at place `head`.
std::vector<std::vector<Slot>> make_links(Exchange& exchange, const AlgorithmParams& params,
                                          const Places& places, int head) {
  std::vector<std::vector<Slot>> links(params.ranks - 1);
  for (int i = 0; i + 1 < params.ranks; ++i) {
    for (int c = 0; c < params.chunks; ++c) {
      links[i].push_back(exchange.slot(places.rank(head + i), places.rank(head + i + 1)));
    }
  }
  return links;
}

}  // namespace

Plan chain_broadcast(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kChainName, Collective::kBroadcast, params);
  PlanBuilder plan(kChainName, Collective::kBroadcast, n, params.root, params.chunks,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const Places places(params);
  const int head = places.place(params.root);
  const std::vector<std::vector<Slot>> links = make_links(exchange, params, places, head);
  for (int i = 0; i < n; ++i) {
    const int rank = places.rank(head + i);
    for (int c = 0; c < params.chunks; ++c) {
      std::vector<Ref> dsts{output(rank, c)};
      if (i + 1 < n) dsts.push_back(links[i][c].ref());
      const Ref src = i == 0 ? input(rank, c) : links[i - 1][c].ref();
      StepRef step = plan.lane(rank).copy(c, std::move(dsts), src);
      if (i > 0) exchange.take(step, links[i - 1][c]);
      if (i + 1 < n) exchange.fill(step, links[i][c]);
    }
  }
  return std::move(plan).build();
}

Plan chain_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kChainName, Collective::kReduce, params);
  PlanBuilder plan(kChainName, Collective::kReduce, n, params.root, params.chunks,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const Places places(params);
  const int head = places.place(params.root) + 1;
  const std::vector<std::vector<Slot>> links = make_links(exchange, params, places, head);
  for (int i = 0; i < n; ++i) {
    const int rank = places.rank(head + i);
    LaneRef lane = plan.lane(rank);
    for (int c = 0; c < params.chunks; ++c) {
      if (i == 0) {
        exchange.fill(lane.copy(c, links[0][c].ref(), input(rank, c)), links[0][c]);
        continue;
      }
      const Ref dst = i + 1 < n ? links[i][c].ref() : output(rank, c);
      StepRef step = lane.reduce(c, {dst}, {links[i - 1][c].ref(), input(rank, c)});
      exchange.take(step, links[i - 1][c]);
      if (i + 1 < n) exchange.fill(step, links[i][c]);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
