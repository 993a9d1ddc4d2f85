#include "topology/searched.h"

#include <algorithm>
#include <map>

namespace tessera::topology {
namespace {

int device_of(const Graph& graph, int node) { return graph.nodes[node].index; }

// The farthest class of path that the hops of one channel take within host 0, and between hosts.
struct Classes {
  const char* intra = "LOC";
  const char* inter = "LOC";
};

Classes classes_of(const Graph& graph, Paths& paths, const Layout& layout, const Ring& ring) {
  Reach within, between;
  Classes classes;
  for (const Hop& hop : ring.hops) {
    const int from = layout.nodes[hop.from], to = layout.nodes[hop.to];
    if (from == to) continue;
    const Path path = paths.between(from, to);
    const bool same = graph.nodes[from].host == graph.nodes[to].host;
    Reach& worst = same ? within : between;
    if (worst.found && compare(worst, path) >= 0) continue;
    worst = path;
    (same ? classes.intra : classes.inter) = class_name(graph, path);
  }
  return classes;
}

// The ranks of host 0 in the order of a ring, and whether the ring leaves the host.
std::vector<int> on_first_host(const Graph& graph, const Layout& layout,
                               const std::vector<int>& order) {
  const auto home = [&](int rank) { return graph.nodes[layout.nodes[rank]].host == 0; };
  // begin where the ring enters the host
  size_t begin = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const int before = order[(i + order.size() - 1) % order.size()];
    if (home(order[i]) && !home(before)) begin = i;
  }
  std::vector<int> ranks;
  for (size_t i = 0; i < order.size(); ++i) {
    const int rank = order[(begin + i) % order.size()];
    if (home(rank)) ranks.push_back(rank);
  }
  return ranks;
}

GraphChannel channel_of(const Graph& graph, const Layout& layout, const std::vector<int>& ranks) {
  GraphChannel channel;
  for (const int rank : ranks) channel.gpus.push_back({device_of(graph, layout.nodes[rank]), rank});
  if (graph.hosts > 1 && !ranks.empty()) {
    for (const int end : {ranks.front(), ranks.back()}) {
      const auto& ports = layout.ports[end];
      if (!ports.empty())
        channel.nets.push_back(static_cast<uint64_t>(graph.nodes[ports.front()].index));
    }
    if (channel.nets.size() != 2) channel.nets.clear();
  }
  return channel;
}

// On one host a rank that is stated and sits on the device counts: several may sit on one core.
bool stated_rank(const Graph& graph, std::span<const int> rank_nodes, const GraphGpu& gpu) {
  if (graph.hosts > 1 || !gpu.rank || *gpu.rank < 0) return false;
  const auto rank = static_cast<size_t>(*gpu.rank);
  return rank < rank_nodes.size() && device_of(graph, rank_nodes[rank]) == gpu.device;
}

// From the deepest rank of host 0 up to the tree's entry.
std::vector<int> chain_of(const Graph& graph, const Layout& layout, const Tree& tree) {
  std::vector<std::pair<int, int>> by_depth;
  for (int rank = 0; rank < static_cast<int>(tree.parent.size()); ++rank) {
    if (graph.nodes[layout.nodes[rank]].host != 0) continue;
    int depth = 0;
    for (int at = rank; tree.parent[at] >= 0; at = tree.parent[at]) ++depth;
    by_depth.emplace_back(depth, rank);
  }
  std::sort(by_depth.begin(), by_depth.end());
  std::vector<int> chain;
  for (const auto& [depth, rank] : by_depth) chain.push_back(rank);
  return chain;
}

}  // namespace

SearchedGraphs searched_graphs(const Graph& graph, const Layout& layout) {
  SearchedGraphs result;
  Paths paths(graph);
  SearchedGraph rings;
  rings.pattern = GraphPattern::kRing;
  rings.same_channels = true;
  for (const Ring& ring : layout.rings) {
    rings.channels.push_back(channel_of(graph, layout, on_first_host(graph, layout, ring.order)));
    rings.speed_intra = rings.speed_inter = ring.bandwidth;
  }
  if (!layout.rings.empty()) {
    const Classes classes = classes_of(graph, paths, layout, layout.rings.front());
    rings.type_intra = classes.intra;
    rings.type_inter = graph.hosts > 1 ? classes.inter : classes.intra;
    result.graphs.push_back(std::move(rings));
  }
  SearchedGraph trees;
  trees.id = 1;
  trees.pattern = GraphPattern::kBalancedTree;
  trees.same_channels = true;
  for (const Tree& tree : layout.trees) {
    trees.channels.push_back(channel_of(graph, layout, chain_of(graph, layout, tree)));
    trees.speed_intra = trees.speed_inter = tree.bandwidth;
  }
  if (!layout.trees.empty() && !result.graphs.empty()) {
    trees.type_intra = result.graphs.front().type_intra;
    trees.type_inter = result.graphs.front().type_inter;
    result.graphs.push_back(std::move(trees));
  }
  return result;
}

Result<Layout> layout_of(const Graph& graph, std::span<const int> rank_nodes,
                         const SearchedGraphs& graphs, const std::string& source) {
  Result<Layout> found = search(graph, rank_nodes);
  if (!found.ok()) return found.status();
  Layout layout = std::move(found).value();
  const auto rings = std::find_if(graphs.graphs.begin(), graphs.graphs.end(),
                                  [](const SearchedGraph& g) { return g.id == 0; });
  if (rings == graphs.graphs.end())
    return Status::error(Code::kInvalidUsage, "{}: has no rings (graph id 0)", source);
  std::map<std::pair<int, int>, int> rank_of;  // (host, device)
  for (size_t rank = 0; rank < rank_nodes.size(); ++rank) {
    const Node& node = graph.nodes[rank_nodes[rank]];
    rank_of[{node.host, node.index}] = static_cast<int>(rank);
  }
  layout.rings.clear();
  Paths paths(graph);
  std::vector<std::vector<Hop>> channels;
  for (size_t c = 0; c < rings->channels.size(); ++c) {
    Ring ring;
    for (int host = 0; host < graph.hosts; ++host) {
      for (const GraphGpu& gpu : rings->channels[c].gpus) {
        if (stated_rank(graph, rank_nodes, gpu)) {
          ring.order.push_back(*gpu.rank);
          continue;
        }
        const auto rank = rank_of.find({host, gpu.device});
        if (rank == rank_of.end())
          return Status::error(Code::kInvalidUsage,
                               "{}: graph 0, channel {}: device {} is no rank of host {}", source,
                               c, gpu.device, host);
        ring.order.push_back(rank->second);
      }
    }
    std::vector<int> sorted = ring.order;
    std::sort(sorted.begin(), sorted.end());
    const bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (!once || sorted.size() != rank_nodes.size())
      return Status::error(Code::kInvalidUsage,
                           "{}: graph 0, channel {}: does not hold each of the {} ranks once",
                           source, c, rank_nodes.size());
    for (size_t i = 0; i < ring.order.size(); ++i) {
      const int from = ring.order[i], to = ring.order[(i + 1) % ring.order.size()];
      ring.hops.push_back({from, to, paths.between(rank_nodes[from], rank_nodes[to]).links, -1});
    }
    channels.push_back(ring.hops);
    layout.rings.push_back(std::move(ring));
  }
  const double bandwidth = shared_bandwidth(graph, rank_nodes, channels);
  for (Ring& ring : layout.rings) ring.bandwidth = bandwidth;
  layout.ring_bandwidth = bandwidth * static_cast<double>(layout.rings.size());
  layout.notes.push_back("rings as " + source + " has them");
  return layout;
}

}  // namespace tessera::topology
