#include "transports/emulated/links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "topology/paths.h"

namespace tessera::emulated {
namespace {

std::chrono::nanoseconds nanoseconds_of(double ns) {
  return std::chrono::nanoseconds(std::llround(ns));
}

// Makes lines when a path first needs them, so that the unused links of a large graph cost nothing.
class LinesOf {
 public:
  LinesOf(const topology::Graph& graph, Links& links) : graph_(graph), links_(links) {}

  int link(int index) {
    const auto [it, fresh] = of_link_.try_emplace(index, next());
    if (fresh) {
      const topology::Link& link = graph_.links[static_cast<size_t>(index)];
      const topology::Node& from = graph_.nodes[static_cast<size_t>(link.from)];
      const topology::Node& to = graph_.nodes[static_cast<size_t>(link.to)];
      const int host = std::max(from.host, to.host);
      add(host, from.name + " -> " + to.name, {link.bandwidth});
    }
    return it->second;
  }

  // Of a device with a fan-out limit; -1: it has none.
  int device(int node, bool sends) {
    const topology::Node& at = graph_.nodes[static_cast<size_t>(node)];
    if (at.fan_out.empty()) return -1;
    const auto [it, fresh] = of_device_.try_emplace({node, sends}, next());
    if (fresh) add(at.host, at.name + (sends ? " sends" : " receives"), at.fan_out);
    return it->second;
  }

 private:
  int next() const { return static_cast<int>(links_.lines.size()); }
  void add(int host, const std::string& name, std::vector<double> rates) {
    links_.lines.push_back(
        {graph_.hosts > 1 ? fmt::format("host {}: {}", host, name) : name, std::move(rates)});
  }

  const topology::Graph& graph_;
  Links& links_;
  std::map<int, int> of_link_;
  std::map<std::pair<int, bool>, int> of_device_;
};

}  // namespace

double Links::rate(int from, int to) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Hop& hop : way(from, to).hops)
    least = std::min(least, lines[static_cast<size_t>(hop.line)].rate(1));
  return least;
}

Links uniform_links(int ranks, double rate, std::chrono::nanoseconds latency,
                    const std::vector<double>& fan_out) {
  Links links;
  links.ranks = ranks;
  links.hosts.assign(static_cast<size_t>(ranks), 0);
  std::vector<double> rates;
  for (const double share : fan_out) rates.push_back(rate * share);
  if (rates.empty()) rates.push_back(rate);
  for (int rank = 0; rank < ranks; ++rank) {
    links.lines.push_back({fmt::format("rank {} sends", rank), rates});
    links.lines.push_back({fmt::format("rank {} receives", rank), rates});
  }
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      Way way;
      if (from != to) way = {{{2 * from, to}, {2 * to + 1, from}}, latency};
      links.ways.push_back(std::move(way));
    }
  }
  return links;
}

Result<Links> links_on(const topology::Graph& graph, const std::vector<int>& node_of_rank) {
  Links links;
  links.ranks = static_cast<int>(node_of_rank.size());
  for (const int node : node_of_rank)
    links.hosts.push_back(std::max(0, graph.nodes[static_cast<size_t>(node)].host));
  LinesOf lines(graph, links);
  topology::Paths paths(graph);
  for (int from = 0; from < links.ranks; ++from) {
    for (int to = 0; to < links.ranks; ++to) {
      Way way;
      const int a = node_of_rank[static_cast<size_t>(from)];
      const int b = node_of_rank[static_cast<size_t>(to)];
      const topology::Path path = paths.between(a, b);
      if (!path.found || (!path.links.empty() && !(path.bandwidth > 0)))
        return Status::error(Code::kInvalidArgument,
                             "rank {} ({}) and rank {} ({}) are not connected: no path leads from "
                             "the one to the other",
                             from, graph.nodes[static_cast<size_t>(a)].name, to,
                             graph.nodes[static_cast<size_t>(b)].name);
      way.latency = nanoseconds_of(path.latency * 1000);
      if (!path.links.empty()) {
        if (const int line = lines.device(a, true); line >= 0) way.hops.push_back({line, to});
        for (const int link : path.links) way.hops.push_back({lines.link(link), to});
        if (const int line = lines.device(b, false); line >= 0) way.hops.push_back({line, from});
      }
      links.ways.push_back(std::move(way));
    }
  }
  return links;
}

Links slowed(Links links, double factor) {
  for (Line& line : links.lines) {
    for (double& rate : line.rates) rate /= factor;
  }
  for (Way& way : links.ways)
    way.latency = nanoseconds_of(static_cast<double>(way.latency.count()) * factor);
  return links;
}

}  // namespace tessera::emulated
