// Double binary tree all-reduce: sums climb a tree and the result descends it, in two trees at
// once, each with half of the chunks.
//
// In a binary tree half of the ranks are leaves, which send once and receive once while inner ranks
// do so three times. Here the leaves of one tree are inner ranks of the other (but for one rank
// when n is odd), so all ranks are equally busy.
//
// A tree over the labels 1..n: the height of a label is its lowest set bit, so odd labels are
// leaves.
//
//                   4                 first tree:  place p has label p + 1
//             2           6           second tree: place p has label n - p if n is even,
//          1     3     5                           else p, and place 0 has n
//
// A place is that of a rank in AlgorithmParams::order.
//
// Each tree has two lanes at every rank: one climbs, one descends. A rank's leaf in one tree never
// waits for its inner place in the other, and later chunks and passes climb while earlier ones
// descend. Each chunk is finished at one root, so all ranks end bitwise equal.
//
// Cost, with m chunks in each tree: (2 floor(log2 n) - 1 + m) (alpha + 3/2 S/m beta + S/m gamma)
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/places.h"
#include "algorithms/trees.h"

namespace tessera {
namespace {

// Lanes of tree t.
constexpr int climbing(int t) { return 2 * t; }
constexpr int descending(int t) { return 2 * t + 1; }

// The label above `label`; 0 for the root. Where the natural parent is beyond n, the next one on
// the left.
int label_above(int label, int ranks) {
  const int bit = lowest_bit(label);
  const int natural = (label - bit) | (bit * 2);
  return natural <= ranks ? natural : label - bit;
}

// rank_of[label - 1] is the rank with that label.
Tree label_tree(const std::vector<int>& rank_of) {
  const int n = static_cast<int>(rank_of.size());
  std::vector<int> parent(n, -1);
  for (int label = 1; label <= n; ++label) {
    const int above = label_above(label, n);
    if (above > 0) parent[rank_of[label - 1]] = rank_of[above - 1];
  }
  return make_tree(std::move(parent));
}

std::vector<Tree> two_trees(const AlgorithmParams& params) {
  const int n = params.ranks;
  const Places places(params);
  std::vector<int> first, second;
  for (int label = 1; label <= n; ++label) {
    first.push_back(places.rank(label - 1));
    second.push_back(places.rank(n % 2 == 0 ? n - label : label));
  }
  return {label_tree(first), label_tree(second)};
}

}  // namespace

Plan double_tree_all_reduce(const AlgorithmParams& params) {
  constexpr const char* kName = "double-tree";
  if (params.ranks == 1) return alone(kName, Collective::kAllReduce, params);
  PlanBuilder plan(kName, Collective::kAllReduce, params.ranks, -1, 2 * params.chunks,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const std::vector<Tree> trees = two_trees(params);
  std::vector<Way> up, down;  // by chunk; even chunks are the first tree's
  for (int c = 0; c < 2 * params.chunks; ++c) {
    up.push_back(way_up(exchange, trees[c % 2]));
    down.push_back(way_down(exchange, trees[c % 2]));
  }
  for (int rank = 0; rank < params.ranks; ++rank) {
    for (int c = 0; c < 2 * params.chunks; ++c) {
      const int t = c % 2;
      climb(plan, exchange, up[c], rank, Cargo::same(c), climbing(t), &down[c]);
      if (rank != trees[t].root)
        descend(plan, exchange, down[c], rank, Cargo::same(c), descending(t));
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
