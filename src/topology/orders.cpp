// Orders that are worth trying before, or instead of, a search.
//
//   by place       ranks that share a cache, a NUMA node or a host are neighbours
//   as numbered    0, 1, ..., r - 1
//   zigzags        where all GPUs are linked with all: rings that share no link
//   greedy         nearest neighbour, improved by turning stretches round; for middling groups
//
// Cost: O(r log r) for the first three; O(r^2) per round of improvement, up to 64 ranks.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "topology/search_parts.h"

namespace tessera::topology {
namespace {

constexpr int kMostRounds = 8;

// Rings of a complete graph that share no edge: rank r - 1 in the middle, the others zigzag around
// a circle, turned by one place from ring to ring (Walecki).
//
//   4 ranks around 3 . . 0   ring 0: m 0 1 4 2 3     ring 1: m 1 2 0 3 4     (r = 6)
std::vector<std::vector<int>> zigzags(int ranks) {
  std::vector<std::vector<int>> rings;
  const int around = ranks - 1;
  for (int turn = 0; turn < around / 2; ++turn) {
    std::vector<int> ring{ranks - 1};
    for (int i = 0; i < around; ++i) {
      const int offset = i % 2 == 1 ? (i + 1) / 2 : around - i / 2;
      ring.push_back((turn + offset) % around);
    }
    rings.push_back(std::move(ring));
  }
  return rings;
}

// The caches on the way from a core to memory, the farthest first.
std::vector<int> caches_above(const Graph& graph, int node) {
  std::vector<int> caches;
  for (int at = node;;) {
    int next = -1;
    for (const int link : graph.out[at]) {
      const int to = graph.links[link].to;
      if (graph.links[link].kind == LinkKind::kMemory) return caches;  // the last one
      const bool seen = std::find(caches.begin(), caches.end(), to) != caches.end();
      if (graph.nodes[to].kind == NodeKind::kCache && !seen) next = to;
    }
    if (next < 0) return caches;
    caches.insert(caches.begin(), next);
    at = next;
  }
}

}  // namespace

bool ChainSearch::complete() {
  const int n = static_cast<int>(group_.ranks.size());
  if (n < 5 || n > kMostExactRanks) return false;
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) {
      const Reach reach = paths_.reach(nodes_[group_.ranks[i]], nodes_[group_.ranks[j]]);
      if (reach.hops != 1 || reach.type > LinkKind::kXgmi) return false;
    }
  }
  return true;
}

std::vector<std::vector<int>> ChainSearch::known_orders() {
  const int n = static_cast<int>(group_.ranks.size());
  std::vector<std::vector<int>> orders;
  if (complete()) {
    for (const std::vector<int>& ring : zigzags(n)) {
      orders.push_back(ring);
      orders.emplace_back(ring.rbegin(), ring.rend());
    }
  }
  orders.push_back(by_place());
  std::vector<int> numbered(n);
  std::iota(numbered.begin(), numbered.end(), 0);
  orders.push_back(numbered);
  if (n > kMostExactRanks && n <= kMostGreedyRanks) orders.push_back(greedy());
  return orders;
}

// By host, NUMA node, caches and number, so that ranks that share something are neighbours.
std::vector<int> ChainSearch::by_place() {
  using Key = std::tuple<int, int64_t, std::vector<int>, int>;
  std::vector<std::pair<Key, int>> keyed;
  for (size_t i = 0; i < group_.ranks.size(); ++i) {
    const int node = nodes_[group_.ranks[i]];
    std::vector<int> caches;
    if (graph_.nodes[node].kind == NodeKind::kCore) caches = caches_above(graph_, node);
    keyed.push_back({{graph_.nodes[node].host, graph_.nodes[node].numa, std::move(caches), node},
                     static_cast<int>(i)});
  }
  std::stable_sort(keyed.begin(), keyed.end());
  std::vector<int> order;
  for (const auto& [key, place] : keyed) order.push_back(place);
  return order;
}

std::vector<int> ChainSearch::greedy() {
  const int n = static_cast<int>(group_.ranks.size());
  std::vector<int> order{0};
  std::vector<char> used(n, 0);
  used[0] = 1;
  while (static_cast<int>(order.size()) < n) {
    int best = -1;
    double least = 0;
    for (int next = 0; next < n; ++next) {
      if (used[next] != 0) continue;
      const double cost = hop_cost(order.back(), next);
      if (best < 0 || cost < least) {
        best = next;
        least = cost;
      }
    }
    used[best] = 1;
    order.push_back(best);
  }
  improve(order);
  return order;
}

// Turns a stretch of the order round where that shortens it; links are symmetric.
void ChainSearch::improve(std::vector<int>& order) {
  const size_t n = order.size();
  bool better = true;
  for (int round = 0; better && round < kMostRounds; ++round) {
    better = false;
    for (size_t i = 0; i + 2 < n; ++i) {
      for (size_t j = i + 2; j < n; ++j) {
        const int a = order[i], b = order[i + 1], c = order[j], d = order[(j + 1) % n];
        if (d == a) continue;
        const double gain = hop_cost(a, b) + hop_cost(c, d) - hop_cost(a, c) - hop_cost(b, d);
        if (gain <= 1e-9) continue;
        std::reverse(order.begin() + static_cast<long>(i) + 1,
                     order.begin() + static_cast<long>(j) + 1);
        better = true;
      }
    }
  }
}

}  // namespace tessera::topology
