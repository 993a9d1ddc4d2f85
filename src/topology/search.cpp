#include "topology/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "topology/link_speeds.h"
#include "topology/search_parts.h"

namespace tessera::topology {
namespace {

Status check_ranks(Paths& paths, std::span<const int> rank_nodes) {
  const Graph& graph = paths.graph();
  if (rank_nodes.empty()) return Status(Code::kInvalidArgument, "a layout needs at least one rank");
  std::map<int, int> on_gpu;
  for (size_t i = 0; i < rank_nodes.size(); ++i) {
    const int node = rank_nodes[i], rank = static_cast<int>(i);
    if (node < 0 || node >= static_cast<int>(graph.nodes.size())) {
      return Status::error(Code::kInvalidArgument,
                           "rank {} sits on node {}, the graph has nodes 0 to {}", rank, node,
                           graph.nodes.size() - 1);
    }
    const Node& at = graph.nodes[node];
    if (at.kind != NodeKind::kGpu && at.kind != NodeKind::kCore && at.kind != NodeKind::kCpu) {
      return Status::error(Code::kInvalidArgument,
                           "rank {} sits on {} of host {}, which is a {}; ranks sit on GPUs, cores "
                           "or CPUs",
                           rank, at.name, at.host, to_string(at.kind));
    }
    if (at.kind == NodeKind::kGpu && !on_gpu.emplace(node, rank).second) {
      return Status::error(Code::kInvalidArgument,
                           "ranks {} and {} are both on {} of host {}; a GPU serves one rank",
                           on_gpu[node], rank, at.name, at.host);
    }
    if (!paths.reach(rank_nodes[0], node).found) {
      const Node& zero = graph.nodes[rank_nodes[0]];
      return Status::error(
          Code::kInvalidArgument,
          "there is no path between rank 0 ({} of host {}) and rank {} ({} of host "
          "{}): the graph is not connected",
          zero.name, zero.host, rank, at.name, at.host);
    }
  }
  return {};
}

std::vector<Group> groups_of(Paths& paths, std::span<const int> rank_nodes) {
  std::map<int, Group> by_island;
  for (size_t rank = 0; rank < rank_nodes.size(); ++rank) {
    by_island[paths.island(rank_nodes[rank])].ranks.push_back(static_cast<int>(rank));
  }
  std::vector<Group> groups;
  for (auto& [island, group] : by_island) groups.push_back(std::move(group));
  return groups;
}

// The order 0, 1, ..., n - 1 over best paths.
Ring naive_ring(Paths& paths, const std::vector<int>& nodes) {
  Ring ring;
  const int n = static_cast<int>(nodes.size());
  for (int rank = 0; rank < n; ++rank) {
    ring.order.push_back(rank);
    const int next = (rank + 1) % n;
    if (n > 1) ring.hops.push_back({rank, next, paths.between(nodes[rank], nodes[next]).links, -1});
  }
  return ring;
}

}  // namespace

double shared_bandwidth(const Graph& graph, std::span<const int> rank_nodes,
                        const std::vector<std::vector<Hop>>& channels) {
  std::vector<int> uses(graph.links.size(), 0);
  std::map<int, std::pair<int, std::set<int>>> on_switch;  // GPU: hops out, peers
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<Hop>& channel : channels) {
    for (const Hop& hop : channel) {
      if (hop.links.empty() && rank_nodes[hop.from] != rank_nodes[hop.to]) return 0;
      for (const int link : hop.links) ++uses[link];
      const int node = rank_nodes[hop.from];
      if (hop.links.empty() || graph.nodes[node].fan_out.empty()) continue;
      if (graph.nodes[graph.links[hop.links.front()].to].kind != NodeKind::kNvSwitch) continue;
      auto& [hops, peers] = on_switch[node];
      ++hops;
      peers.insert(hop.to);
    }
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] > 0) least = std::min(least, graph.links[i].bandwidth / uses[i]);
  }
  for (const auto& [node, load] : on_switch) {
    const std::vector<double>& table = graph.nodes[node].fan_out;
    const size_t entry = std::min(load.second.size(), table.size()) - 1;
    least = std::min(least, table[entry] / load.first);
  }
  return std::min(least, kLocalBandwidth);
}

namespace {

void share_out(const Graph& graph, Layout& layout) {
  std::vector<std::vector<Hop>> hops;
  for (const Ring& ring : layout.rings) hops.push_back(ring.hops);
  const double ring = shared_bandwidth(graph, layout.nodes, hops);
  for (Ring& each : layout.rings) each.bandwidth = ring;
  layout.ring_bandwidth = ring * static_cast<double>(layout.rings.size());
  hops.clear();
  for (const Tree& tree : layout.trees) {
    std::vector<Hop> both = tree.hops;
    for (const Hop& up : tree.hops) {
      Hop down{up.to, up.from, {}, up.relay};
      for (auto it = up.links.rbegin(); it != up.links.rend(); ++it) {
        down.links.push_back(graph.links[*it].reverse);
      }
      both.push_back(std::move(down));
    }
    hops.push_back(std::move(both));
  }
  const double tree = shared_bandwidth(graph, layout.nodes, hops);
  for (Tree& each : layout.trees) each.bandwidth = tree;
  layout.tree_bandwidth = tree * static_cast<double>(layout.trees.size());
}

// A chain along the one ring that there is, when no search has found any.
Tree chain_of(const Graph& graph, const Ring& ring) {
  Tree tree;
  tree.root = ring.order.front();
  tree.parent.assign(ring.order.size(), -1);
  for (size_t i = 1; i < ring.order.size(); ++i) {
    tree.parent[ring.order[i]] = ring.order[i - 1];
    Hop up{ring.order[i], ring.order[i - 1], {}, -1};
    const std::vector<int>& down = ring.hops[i - 1].links;
    for (auto it = down.rbegin(); it != down.rend(); ++it) {
      up.links.push_back(graph.links[*it].reverse);
    }
    tree.hops.push_back(std::move(up));
  }
  return tree;
}

}  // namespace

Result<Layout> search(const Graph& graph, std::span<const int> rank_nodes,
                      const SearchOptions& options) {
  Paths paths(graph);
  Status status = check_ranks(paths, rank_nodes);
  if (!status.ok()) return status;
  Layout layout;
  layout.nodes.assign(rank_nodes.begin(), rank_nodes.end());
  std::vector<Group> groups = groups_of(paths, rank_nodes);
  assign_nics(paths, layout, groups, groups.size() > 1);
  if (groups.size() > 1) {
    size_t rails = groups.front().rails.size(), most = rails;
    for (const Group& group : groups) {
      rails = std::min(rails, group.rails.size());
      most = std::max(most, group.rails.size());
    }
    if (rails != most) {
      layout.notes.push_back("hosts have different numbers of ports: rails as the fewest");
    }
    for (Group& group : groups) {
      group.rails.resize(std::max<size_t>(1, rails));
    }
  }
  const Found found = find_chains(paths, layout.nodes, groups, options);
  if (!found.chains.empty()) {
    layout.rings = found.rings;
    layout.trees = trees_of(paths, layout, groups, found.chains);
  }
  const Ring naive = naive_ring(paths, layout.nodes);
  if (total_of(graph, layout.nodes, {naive}) > found.total * (1 + 1e-9)) {
    if (layout.nodes.size() > 1) layout.notes.push_back("the ranks' own order is the best found");
    layout.rings = {naive};
    if (found.chains.empty()) layout.trees = {chain_of(graph, naive)};
  }
  share_out(graph, layout);
  return layout;
}

}  // namespace tessera::topology
