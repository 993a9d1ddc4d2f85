// Trees for reduce and broadcast: a double binary tree over groups, chains within them.
//
//   groups:        3                each group's chain hangs on its head, which has the links to
//              1       5            other groups:   head <- a <- b <- c
//            0   2   4   6          the second tree makes the leaves of the first its inner ones
//
// Labels 1..n; the height of a label in the tree is its lowest bit, so odd labels are leaves. The
// second tree counts from the other end if n is even and is shifted by one if n is odd, when one
// group is inner in both.
//
// Cost: linear. In time, a tree needs 2 (log2 groups + ranks per group) steps.
#include <algorithm>

#include "topology/search_parts.h"

namespace tessera::topology {
namespace {

// The label above, where the natural one is beyond n the next one on the left; 0: root.
int label_above(int label, int n) {
  const int bit = label & -label;
  const int natural = (label - bit) | (bit << 1);
  return natural <= n ? natural : label - bit;
}

// Port to fabric to port, with the ways between ports and heads.
std::vector<int> across(const std::vector<int>& out, const std::vector<int>& in) {
  std::vector<int> links = out;
  links.insert(links.end(), in.begin(), in.end());
  return links;
}

std::vector<int> reversed(const Graph& graph, const std::vector<int>& links) {
  std::vector<int> back;
  for (auto it = links.rbegin(); it != links.rend(); ++it) {
    back.push_back(graph.links[*it].reverse);
  }
  return back;
}

// Everyone after the head hands its sum to the one before.
void hang_chain(const Graph& graph, const Group& group, const Chain& chain, Tree& tree,
                std::vector<Hop>& up) {
  for (size_t i = 1; i < chain.order.size(); ++i) {
    const int rank = group.ranks[chain.order[i]], above = group.ranks[chain.order[i - 1]];
    tree.parent[rank] = above;
    up[rank] = {rank, above, reversed(graph, chain.hops[i - 1].links), -1};
  }
}

void close(Tree& tree, std::vector<Hop>& up) {
  for (size_t rank = 0; rank < up.size(); ++rank) {
    if (tree.parent[rank] < 0) {
      tree.root = static_cast<int>(rank);
    } else {
      tree.hops.push_back(std::move(up[rank]));
    }
  }
}

}  // namespace

std::pair<std::vector<int>, std::vector<int>> double_tree(int n) {
  std::vector<int> first(n, -1), second(n, -1);
  for (int label = 1; label <= n; ++label) {
    const int above = label_above(label, n);
    if (above == 0) continue;
    first[label - 1] = above - 1;
    const auto mirrored = [n](int l) { return n % 2 == 0 ? n - l : l % n; };
    second[mirrored(label)] = mirrored(above);
  }
  return {first, second};
}

std::vector<Tree> trees_of(Paths& paths, const Layout& layout, const std::vector<Group>& groups,
                           const std::vector<std::vector<Chain>>& chains) {
  const Graph& graph = paths.graph();
  const size_t ranks = layout.nodes.size();
  const int n = static_cast<int>(groups.size());
  const auto [first, second] = double_tree(n);
  size_t channels = chains.front().size();
  // One pair for each rail: more would share the same links
  if (n > 1) {
    for (const Group& group : groups) channels = std::min(channels, group.rails.size());
  }
  std::vector<Tree> trees;
  for (size_t channel = 0; channel < channels; ++channel) {
    for (const std::vector<int>* above : {&first, &second}) {
      if (n == 1 && above == &second) break;
      Tree tree;
      tree.parent.assign(ranks, -1);
      std::vector<Hop> up(ranks);
      for (int g = 0; g < n; ++g) {
        const Chain& chain = chains[g][channel];
        hang_chain(graph, groups[g], chain, tree, up);
        const int parent = (*above)[g];
        if (parent < 0) continue;
        const int head = groups[g].ranks[chain.order.front()];
        const Chain& there = chains[parent][channel];
        tree.parent[head] = groups[parent].ranks[there.order.front()];
        up[head] = {head, tree.parent[head], across(reversed(graph, chain.in), there.in), -1};
      }
      close(tree, up);
      trees.push_back(std::move(tree));
    }
  }
  return trees;
}

}  // namespace tessera::topology
