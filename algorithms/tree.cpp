// Pipelined binary trees: broadcast and reduce.
//
// Number the ranks from the root on, in AlgorithmParams::order: v = (place - place of the root) mod
// n. The children of v are 2v + 1 and 2v + 2.
//
//             0
//           /   \            m chunks follow each other: an inner rank passes one chunk on,
//          1     2           or adds one up, while the next is on its way to it
//         / \   / \      7 ranks
//        3   4 5   6
//
// An inner rank sends every byte twice (or receives it twice), so that a link gets half the
// bandwidth it has in a chain; but the way is only log2(n) long.
//
// Cost: broadcast  (floor(log2 n) - 1 + m) (alpha + 2 S/m beta)
//       reduce     (floor(log2 n) - 1 + m) (alpha + 2 S/m (beta + gamma))
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/places.h"
#include "algorithms/trees.h"

namespace tessera {
namespace {

constexpr const char* kTreeName = "tree";

Tree binary_tree(const AlgorithmParams& params) {
  const Places places(params);
  const int root = places.place(params.root);
  std::vector<int> parent(params.ranks, -1);
  for (int v = 1; v < params.ranks; ++v)
    parent[places.rank(root + v)] = places.rank(root + (v - 1) / 2);
  return make_tree(std::move(parent));
}

}  // namespace

Plan tree_broadcast(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(kTreeName, Collective::kBroadcast, params);
  PlanBuilder plan(kTreeName, Collective::kBroadcast, params.ranks, params.root, params.chunks,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const Tree tree = binary_tree(params);
  for (int c = 0; c < params.chunks; ++c) {
    const Way down = way_down(exchange, tree);
    start_down(plan, exchange, down, Cargo::same(c));
    for (int rank = 0; rank < params.ranks; ++rank) {
      if (rank != params.root) descend(plan, exchange, down, rank, Cargo::same(c), 0);
    }
  }
  return std::move(plan).build();
}

Plan tree_reduce(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(kTreeName, Collective::kReduce, params);
  PlanBuilder plan(kTreeName, Collective::kReduce, params.ranks, params.root, params.chunks,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const Tree tree = binary_tree(params);
  for (int c = 0; c < params.chunks; ++c) {
    const Way up = way_up(exchange, tree);
    for (int rank = 0; rank < params.ranks; ++rank) {
      climb(plan, exchange, up, rank, Cargo::same(c), 0, nullptr);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
