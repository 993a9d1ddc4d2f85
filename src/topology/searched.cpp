#include "topology/searched.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "topology/search_parts.h"

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
  for (const int rank : ranks)
    channel.gpus.push_back({device_of(graph, layout.nodes[rank]), rank, 0});
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

// The ports by which a ring enters host 0 and leaves it; none: it stays there.
std::vector<uint64_t> nets_of(const Graph& graph, const Layout& layout, const Ring& ring) {
  const auto host_of = [&](int rank) { return graph.nodes[layout.nodes[rank]].host; };
  std::vector<uint64_t> in, out;
  for (const Hop& hop : ring.hops) {
    if (host_of(hop.from) == host_of(hop.to)) continue;
    for (const int link : hop.links) {
      for (const int end : {graph.links[link].from, graph.links[link].to}) {
        const Node& node = graph.nodes[end];
        if (node.kind != NodeKind::kPort || node.host != 0) continue;
        (host_of(hop.to) == 0 ? in : out).assign(1, static_cast<uint64_t>(node.index));
      }
    }
  }
  in.insert(in.end(), out.begin(), out.end());
  return in.size() == 2 ? in : std::vector<uint64_t>();
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
    rings.channels.back().nets = nets_of(graph, layout, ring);
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

namespace {

// The hops between hosts, by the ports that the channel names; without links where it names none.
void leave_by_ports(Paths& paths, std::span<const int> rank_nodes, const GraphChannel& channel,
                    Ring& ring) {
  const Graph& graph = paths.graph();
  if (channel.nets.size() != 2 || paths.fabric() < 0) return;
  const auto port_of = [&](int host, uint64_t index) {
    const std::vector<int> ports = graph.of_kind(NodeKind::kPort, host);
    return index < ports.size() ? ports[index] : -1;
  };
  for (size_t tail = channel.gpus.size() - 1; tail < ring.hops.size();
       tail += channel.gpus.size()) {
    Hop& hop = ring.hops[tail];
    const int head = ring.order[tail + 1 - channel.gpus.size()];
    const int from = rank_nodes[hop.from], to = rank_nodes[hop.to];
    const int out = port_of(graph.nodes[from].host, channel.nets[1]),
              in = port_of(graph.nodes[to].host, channel.nets[0]);
    if (graph.nodes[from].host == graph.nodes[to].host || out < 0 || in < 0) continue;
    const WayOut way = way_out(paths, from, rank_nodes[head], out);
    const std::vector<int> enter = way_in(paths, in, to);
    hop.links = way.links;
    hop.links.insert(hop.links.end(), enter.begin(), enter.end());
    if (way.by_head) hop.relay = head;
  }
}

// The rank that a gpu of a file states, or the one on its device.
Result<int> rank_on_first_host(const GraphGpu& gpu, std::span<const Seat> seats,
                               const std::map<std::pair<int, int>, int>& rank_of,
                               const std::string& place) {
  const auto ranks = static_cast<int>(seats.size());
  if (!gpu.rank) {
    const auto rank = rank_of.find({0, gpu.device});
    if (rank != rank_of.end()) return rank->second;
    return Status::error(Code::kInvalidUsage, "{}: device {} is no rank's", place, gpu.device);
  }
  if (*gpu.rank >= ranks)
    return Status::error(Code::kInvalidUsage, "{}: rank {} is no rank; the ranks are 0 to {}",
                         place, *gpu.rank, ranks - 1);
  const Seat& seat = seats[static_cast<size_t>(*gpu.rank)];
  if (seat.host != 0)
    return Status::error(Code::kInvalidUsage, "{}: rank {} is on host {}; a file describes host 0",
                         place, *gpu.rank, seat.host);
  if (seat.device < 0 ? gpu.device >= ranks : gpu.device != seat.device)
    return Status::error(Code::kInvalidUsage, "{}: rank {} does not sit on device {}{}", place,
                         *gpu.rank, gpu.device,
                         seat.device < 0 ? "" : fmt::format(", but on {}", seat.device));
  return *gpu.rank;
}

}  // namespace

std::vector<Seat> seats_of(const Graph& graph, std::span<const int> rank_nodes) {
  std::vector<Seat> seats;
  for (const int node : rank_nodes) {
    const Node& at = graph.nodes[node];
    // On NUMA nodes sit ranks of which no device is described.
    const bool known = at.kind != NodeKind::kCpu || graph.hosts > 1;
    seats.push_back({at.host, known ? at.index : -1});
  }
  return seats;
}

Result<std::vector<int>> ranks_of(const GraphChannel& channel, std::span<const Seat> seats,
                                  const std::string& source) {
  std::map<std::pair<int, int>, int> rank_of;  // (host, device)
  int hosts = 1;
  for (int rank = 0; rank < static_cast<int>(seats.size()); ++rank) {
    const Seat& seat = seats[static_cast<size_t>(rank)];
    rank_of[{seat.host, seat.device < 0 ? rank : seat.device}] = rank;
    hosts = std::max(hosts, seat.host + 1);
  }
  std::vector<int> order;
  std::vector<int> times(seats.size());
  for (int host = 0; host < hosts; ++host) {
    for (const GraphGpu& gpu : channel.gpus) {
      const std::string place = fmt::format("{}:{}", source, gpu.line);
      const Result<int> first = rank_on_first_host(gpu, seats, rank_of, place);
      if (!first.ok()) return first.status();
      const auto rank = rank_of.find({host, gpu.device});
      if (host > 0 && rank == rank_of.end())
        return Status::error(Code::kInvalidUsage, "{}: device {} is no rank of host {}", place,
                             gpu.device, host);
      order.push_back(host == 0 ? first.value() : rank->second);
      ++times[static_cast<size_t>(order.back())];
    }
  }
  const auto wrong = std::find_if(times.begin(), times.end(), [](int n) { return n != 1; });
  if (wrong == times.end()) return order;
  return Status::error(Code::kInvalidUsage,
                       "{}:{}: in this channel rank {} is there {} times; every rank of 0 to {} "
                       "must be there once",
                       source, channel.gpus.empty() ? 0 : channel.gpus.front().line,
                       wrong - times.begin(), *wrong, times.size() - 1);
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
  const std::vector<Seat> seats = seats_of(graph, rank_nodes);
  layout.rings.clear();
  for (const GraphChannel& channel : rings->channels) {
    Result<std::vector<int>> order = ranks_of(channel, seats, source);
    if (!order.ok()) return order.status();
    Ring ring;
    ring.order = std::move(order).value();
    for (size_t i = 0; i < ring.order.size(); ++i)
      ring.hops.push_back({ring.order[i], ring.order[(i + 1) % ring.order.size()], {}, -1});
    layout.rings.push_back(std::move(ring));
  }
  Paths paths(graph);
  for (size_t c = 0; c < layout.rings.size(); ++c)
    leave_by_ports(paths, rank_nodes, rings->channels[c], layout.rings[c]);
  std::vector<std::vector<Hop>> channels;
  for (const Ring& ring : layout.rings) channels.push_back(ring.hops);
  route(paths, rank_nodes, rank_nodes.size() / static_cast<size_t>(graph.hosts), channels);
  for (size_t c = 0; c < channels.size(); ++c) layout.rings[c].hops = channels[c];
  const double bandwidth = shared_bandwidth(graph, rank_nodes, channels);
  for (Ring& ring : layout.rings) ring.bandwidth = bandwidth;
  layout.ring_bandwidth = bandwidth * static_cast<double>(layout.rings.size());
  layout.notes.push_back("rings as " + source + " has them");
  return layout;
}

}  // namespace tessera::topology
