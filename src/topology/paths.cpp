#include "topology/paths.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

namespace tessera::topology {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr size_t kMostKept = 4U << 20;           // labels and tree entries
constexpr LinkKind kPeerKind = LinkKind::kXgmi;  // up to here GPUs forward by themselves

// A search over an island, by places in it; the fabric, if there is one, is the last place.
struct Island {
  const Graph& graph;
  const std::vector<std::vector<Paths::Exit>>& exits;
  const std::vector<int>& nodes;
  const std::vector<int>& island_of;
  const std::vector<int>& places;
  int fabric;
  int number;

  int place(int node) const {
    return node == fabric ? static_cast<int>(nodes.size()) - 1 : places[node];
  }
  bool holds(int node) const { return node == fabric || island_of[node] == number; }

  // Whether a path of links up to `most` that entered a node by `link` may go on to `next`.
  bool passes(const Link& link, int next, LinkKind most) const {
    const auto is_port = [&](int node) { return graph.nodes[node].kind == NodeKind::kPort; };
    switch (graph.nodes[link.to].kind) {
      case NodeKind::kGpu:
        return most <= kPeerKind;
      case NodeKind::kNic:
        return is_port(link.from) || is_port(next);
      case NodeKind::kCore:
      case NodeKind::kFabric:
        return false;
      default:
        return true;
    }
  }
};

// The greatest width with which each place is reached over links of kinds up to `most`; 0: not.
//
// Where all sockets are joined with all, the links are many more than the nodes. So only the best
// entry of each place is kept, and a node is not left where nothing can be gained.
std::vector<double> widths(const Island& island, int source, LinkKind most) {
  const Graph& graph = island.graph;
  using Entry = std::pair<double, int>;  // width, link
  std::vector<double> width(island.nodes.size(), 0);
  std::vector<Entry> best_open(island.nodes.size(), {0, -1});
  std::priority_queue<Entry> open;
  size_t unreached = island.nodes.size() - 1;
  double narrowest = kUnlimited;  // of all entries
  // By which link a card was reached decides how it may be left
  bool cards = false;
  const auto leave = [&](int node, double so_far, const Link* entered) {
    if (unreached == 0 && narrowest >= so_far && !cards) return;
    for (const Paths::Exit& next : island.exits[node]) {
      if (next.kind > most || !island.holds(next.to)) continue;
      if (entered != nullptr && !island.passes(*entered, next.to, most)) continue;
      const int at = island.place(next.to);
      const Entry entry{std::min(so_far, next.bandwidth), next.id};
      if (entry.first <= width[at] || entry <= best_open[at]) continue;
      unreached -= best_open[at].second < 0 ? 1 : 0;
      narrowest = std::min(narrowest, entry.first);
      cards = cards || graph.nodes[next.to].kind == NodeKind::kNic;
      best_open[at] = entry;
      open.push(entry);
    }
  };
  width[island.place(source)] = kUnlimited;
  leave(source, kUnlimited, nullptr);
  while (!open.empty()) {
    const auto [wide, id] = open.top();
    open.pop();
    const Link& link = graph.links[id];
    double& best = width[island.place(link.to)];
    if (best > 0) continue;
    best = wide;
    leave(link.to, wide, &link);
  }
  return width;
}

struct Nearest {
  std::vector<int> via;  // the link that leads there; -1: none
  std::vector<Reach> reach;
};

// Fewest links or least latency, the other one second, over links up to a kind and of a bandwidth.
Nearest nearest(const Island& island, int source, LinkKind most, double least, Prefer prefer,
                const std::vector<int>& without = {}) {
  const Graph& graph = island.graph;
  Nearest found{std::vector<int>(island.nodes.size(), -1), std::vector<Reach>(island.nodes.size())};
  using Entry = std::tuple<double, double, int>;  // cost, second cost, link
  // As in widths()
  std::vector<Entry> best_open(island.nodes.size(), {kUnlimited, kUnlimited, 0});
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const bool hops_first = prefer == Prefer::kBandwidth;
  size_t unreached = island.nodes.size() - 1;
  double farthest = 0;  // of all entries
  const auto leave = [&](int node, double first, double second, const Link* entered) {
    if (unreached == 0 && hops_first && first + 1 > farthest) return;
    for (const Paths::Exit& next : island.exits[node]) {
      if (next.kind > most || next.bandwidth < least || !island.holds(next.to)) continue;
      if (found.reach[island.place(next.to)].found) continue;
      if (std::find(without.begin(), without.end(), next.id) != without.end()) continue;
      if (entered != nullptr && !island.passes(*entered, next.to, most)) continue;
      const Entry entry{first + (hops_first ? 1 : next.latency),
                        second + (hops_first ? next.latency : 1), next.id};
      Entry& least_open = best_open[island.place(next.to)];
      if (entry >= least_open) continue;
      unreached -= std::get<0>(least_open) == kUnlimited ? 1 : 0;
      farthest = std::max(farthest, std::get<0>(entry));
      least_open = entry;
      open.push(entry);
    }
  };
  found.reach[island.place(source)] = {true, kUnlimited, 0, 0, LinkKind::kLocal};
  leave(source, 0, 0, nullptr);
  while (!open.empty()) {
    const auto [first, second, id] = open.top();
    open.pop();
    const Link& link = graph.links[id];
    const int at = island.place(link.to);
    if (found.reach[at].found) continue;
    found.via[at] = id;
    found.reach[at] = join(found.reach[island.place(link.from)],
                           {true, link.bandwidth, link.latency, 1, link.kind});
    leave(link.to, first, second, &link);
  }
  return found;
}

}  // namespace

Reach join(const Reach& a, const Reach& b) {
  return {a.found && b.found, std::min(a.bandwidth, b.bandwidth), a.latency + b.latency,
          a.hops + b.hops, std::max(a.type, b.type)};
}

int compare(const Reach& a, const Reach& b) {
  if (a.found != b.found) return a.found ? -1 : 1;
  const auto key = [](const Reach& reach) {
    return std::make_tuple(reach.type, -reach.bandwidth, reach.hops, reach.latency);
  };
  if (key(a) == key(b)) return 0;
  return key(a) < key(b) ? -1 : 1;
}

Paths::Paths(const Graph& graph, Prefer prefer) : graph_(graph), prefer_(prefer) {
  const size_t n = graph.nodes.size();
  exits_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    for (const int id : graph.out[i]) {
      const Link& link = graph.links[id];
      exits_[i].push_back({link.to, id, link.bandwidth, link.latency, link.kind});
    }
  }
  island_of_.assign(n, -1);
  place_.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    if (graph.nodes[i].kind == NodeKind::kFabric) fabric_ = static_cast<int>(i);
  }
  for (size_t i = 0; i < n; ++i) {
    if (island_of_[i] >= 0 || static_cast<int>(i) == fabric_) continue;
    const int island = static_cast<int>(islands_.size());
    std::vector<int> nodes{static_cast<int>(i)};
    island_of_[i] = island;
    for (size_t at = 0; at < nodes.size(); ++at) {
      for (const int link : graph.out[nodes[at]]) {
        const int to = graph.links[link].to;
        if (to == fabric_ || island_of_[to] >= 0) continue;
        island_of_[to] = island;
        nodes.push_back(to);
      }
    }
    std::sort(nodes.begin(), nodes.end());
    for (size_t at = 0; at < nodes.size(); ++at) place_[nodes[at]] = static_cast<int>(at);
    if (fabric_ >= 0) nodes.push_back(fabric_);
    islands_.push_back(std::move(nodes));
  }
}

int Paths::place(int node, int island) const {
  return node == fabric_ ? static_cast<int>(islands_[island].size()) - 1 : place_[node];
}

// First the nearest kind that reaches a node at all and the width there; then, for each pair of
// kind and width that occurs, one tree of shortest paths that serves all nodes of that class.
void Paths::by_bandwidth(int node, int island, Source& source) const {
  const Island view{graph_, exits_, islands_[island], island_of_, place_, fabric_, island};
  const size_t n = view.nodes.size();
  std::vector<char> done(n, 0);
  done[view.place(node)] = 1;
  source.labels[view.place(node)].reach = {true, kUnlimited, 0, 0, LinkKind::kLocal};
  size_t left = n - 1;
  for (int kind = 0; kind <= static_cast<int>(LinkKind::kNetwork) && left > 0; ++kind) {
    const LinkKind most = static_cast<LinkKind>(kind);
    const std::vector<double> width = widths(view, node, most);
    std::map<double, int> classes;
    for (size_t at = 0; at < n; ++at) {
      if (done[at] == 0 && width[at] > 0) classes.emplace(width[at], 0);
    }
    for (auto& [least, tree] : classes) {
      Nearest found = nearest(view, node, most, least, Prefer::kBandwidth);
      tree = static_cast<int>(source.trees.size());
      for (size_t at = 0; at < n; ++at) {
        if (done[at] != 0 || width[at] != least || !found.reach[at].found) continue;
        done[at] = 1;
        --left;
        source.labels[at] = {found.reach[at], tree};
      }
      source.trees.push_back(std::move(found.via));
    }
  }
}

void Paths::by_latency(int node, int island, Source& source) const {
  const Island view{graph_, exits_, islands_[island], island_of_, place_, fabric_, island};
  for (const LinkKind most : {LinkKind::kNetwork, kPeerKind}) {
    Nearest found = nearest(view, node, most, 0, Prefer::kLatency);
    for (size_t at = 0; at < view.nodes.size(); ++at) {
      const Reach& reach = found.reach[at];
      Label& best = source.labels[at];
      if (!reach.found || (best.reach.found && best.reach.latency <= reach.latency)) continue;
      best = {reach, static_cast<int>(source.trees.size())};
    }
    source.trees.push_back(std::move(found.via));
  }
}

Paths::Source& Paths::source(int node, int island) {
  const int64_t key = (static_cast<int64_t>(node) << 32) | island;
  const auto at = known_.find(key);
  if (at != known_.end()) return at->second;
  if (kept_ > kMostKept) {
    known_.clear();
    kept_ = 0;
  }
  Source fresh;
  fresh.labels.resize(islands_[island].size());
  if (prefer_ == Prefer::kBandwidth) {
    by_bandwidth(node, island, fresh);
  } else {
    by_latency(node, island, fresh);
  }
  kept_ += islands_[island].size() * (fresh.trees.size() + 10);
  return known_.emplace(key, std::move(fresh)).first->second;
}

const Paths::Label& Paths::label(int from, int to, int island) {
  return source(from, island).labels[place(to, island)];
}

void Paths::append(int from, int to, int island, std::vector<int>& links) {
  const Source& known = source(from, island);
  const Label& there = known.labels[place(to, island)];
  if (there.tree < 0) return;
  const size_t begin = links.size();
  for (int at = to; at != from;) {
    const int link = known.trees[there.tree][place(at, island)];
    if (link < 0) break;
    links.push_back(link);
    at = graph_.links[link].from;
  }
  std::reverse(links.begin() + static_cast<std::ptrdiff_t>(begin), links.end());
}

Reach Paths::reach(int from, int to) {
  if (from == to) return {true, kUnlimited, 0, 0, LinkKind::kLocal};
  if (from == fabric_) return label(from, to, island_of_[to]).reach;
  if (to == fabric_ || island_of_[from] == island_of_[to]) {
    return label(from, to, island_of_[from]).reach;
  }
  if (fabric_ < 0) return {};
  const Reach out = label(from, fabric_, island_of_[from]).reach;
  return join(out, label(fabric_, to, island_of_[to]).reach);
}

Path Paths::between(int from, int to) {
  Path path;
  static_cast<Reach&>(path) = reach(from, to);
  if (!path.found || from == to) return path;
  if (from == fabric_ || to == fabric_ || island_of_[from] == island_of_[to]) {
    append(from, to, from == fabric_ ? island_of_[to] : island_of_[from], path.links);
    return path;
  }
  append(from, fabric_, island_of_[from], path.links);
  append(fabric_, to, island_of_[to], path.links);
  return path;
}

std::vector<Path> Paths::disjoint(int from, int to, int most) {
  std::vector<Path> all{between(from, to)};
  const Path first = all.front();
  if (!first.found || first.links.empty() || island_of_[from] != island_of_[to]) return all;
  const int island = island_of_[from];
  const Island view{graph_, exits_, islands_[island], island_of_, place_, fabric_, island};
  std::vector<int> used = first.links;
  while (static_cast<int>(all.size()) < most) {
    const Nearest found = nearest(view, from, first.type, 0, Prefer::kBandwidth, used);
    Path path;
    static_cast<Reach&>(path) = found.reach[view.place(to)];
    if (!path.found || path.hops > first.hops) break;
    for (int at = to; at != from; at = graph_.links[path.links.back()].from) {
      path.links.push_back(found.via[view.place(at)]);
    }
    std::reverse(path.links.begin(), path.links.end());
    used.insert(used.end(), path.links.begin(), path.links.end());
    all.push_back(std::move(path));
  }
  return all;
}

const char* class_name(const Graph& graph, const Path& path) {
  if (!path.found) return "DIS";
  int gpus = 0, switches = 0, cpus = 0;
  for (size_t i = 0; i + 1 < path.links.size(); ++i) {
    const NodeKind kind = graph.nodes[graph.links[path.links[i]].to].kind;
    gpus += kind == NodeKind::kGpu ? 1 : 0;
    switches += kind == NodeKind::kPciSwitch ? 1 : 0;
    cpus += kind == NodeKind::kCpu ? 1 : 0;
  }
  switch (path.type) {
    case LinkKind::kLocal:
      return "LOC";
    case LinkKind::kNvlink:
    case LinkKind::kXgmi:
      return gpus > 0 ? "NVB" : "NVL";
    case LinkKind::kC2c:
      return "C2C";
    case LinkKind::kCache:
    case LinkKind::kMemory:
      return "PHB";
    case LinkKind::kPcie: {
      const auto is_cpu = [&](int node) { return graph.nodes[node].kind == NodeKind::kCpu; };
      const bool ends =
          is_cpu(graph.links[path.links.front()].from) || is_cpu(graph.links[path.links.back()].to);
      if (cpus > 0 || ends) return "PHB";
      return switches > 1 ? "PXB" : "PIX";
    }
    case LinkKind::kSmp:
      return "SYS";
    case LinkKind::kNetwork:
      return "NET";
  }
  return "DIS";
}

}  // namespace tessera::topology
