// Which of its ways each hop takes, where orders are known and links are not.
#include <algorithm>
#include <map>
#include <utility>

#include "topology/search_parts.h"

namespace tessera::topology {

void route(Paths& paths, std::span<const int> rank_nodes, size_t ranks_of_host,
           std::vector<std::vector<Hop>>& channels) {
  constexpr int kRounds = 4;
  const Graph& graph = paths.graph();
  std::vector<int> uses(graph.links.size(), 0);
  const auto load = [&](const std::vector<int>& way) {
    double most = 0;
    for (const int link : way)
      most = std::max(most, (uses[link] + 1) / graph.links[link].bandwidth);
    return most;
  };
  std::vector<Hop*> open;
  for (std::vector<Hop>& channel : channels) {
    for (Hop& hop : channel) {
      if (hop.links.empty()) open.push_back(&hop);
      for (const int link : hop.links) ++uses[link];
    }
  }
  std::map<std::pair<int, int>, std::vector<std::vector<int>>> known;
  for (int round = 0; round < kRounds; ++round) {
    for (Hop* hop : open) {
      const int from = rank_nodes[hop->from], to = rank_nodes[hop->to];
      const auto [ways, fresh] = known.try_emplace({from, to});
      if (fresh) ways->second = ways_between(paths, from, to, ranks_of_host);
      for (const int link : hop->links) --uses[link];
      hop->links =
          *std::min_element(ways->second.begin(), ways->second.end(),
                            [&](const auto& a, const auto& b) { return load(a) < load(b); });
      for (const int link : hop->links) ++uses[link];
    }
  }
}

}  // namespace tessera::topology
