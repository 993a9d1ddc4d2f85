#include "fusion/machine.h"

#include <utility>
#include <vector>

#include "simulator/cost.h"
#include "tuner/model.h"

namespace tessera {
namespace {

using simulator::Route;
using topology::Graph;
using topology::LinkKind;

topology::Node node_of(topology::NodeKind kind, std::string name) {
  topology::Node node;
  node.kind = kind;
  node.name = std::move(name);
  return node;
}

class LineRoutes : public simulator::Routes {
 public:
  explicit LineRoutes(int ranks) : ranks_(ranks), routes_(static_cast<size_t>(ranks * ranks)) {
    for (int rank = 0; rank < ranks; ++rank)
      graph_.add_node(node_of(topology::NodeKind::kCore, "rank " + std::to_string(rank)));
    far_ = graph_.add_node(node_of(topology::NodeKind::kFabric, "lines"));
  }

  // A line of its own; its number. Only one direction of the pair of links is used.
  int add_line(double gbs) { return graph_.add_link(0, far_, LinkKind::kLocal, gbs, 0); }
  void set(int from, int to, Route route) { routes_[index(from, to)] = std::move(route); }

  const Graph& graph() const override { return graph_; }
  int ranks() const override { return ranks_; }
  int node(int rank) const override { return rank; }
  Result<Route> route(int from, int to) const override { return routes_[index(from, to)]; }

 private:
  size_t index(int from, int to) const { return static_cast<size_t>(from * ranks_ + to); }

  int ranks_, far_ = 0;
  Graph graph_;
  std::vector<Route> routes_;
};

std::unique_ptr<LineRoutes> of_emulated(const emulated::Links& links) {
  auto routes = std::make_unique<LineRoutes>(links.ranks);
  std::vector<int> numbers;
  for (const emulated::Line& line : links.lines) numbers.push_back(routes->add_line(line.rate(1)));
  for (int from = 0; from < links.ranks; ++from) {
    for (int to = 0; to < links.ranks; ++to) {
      const emulated::Way& way = links.way(from, to);
      Route route;
      for (const emulated::Hop& hop : way.hops)
        route.links.push_back(numbers[static_cast<size_t>(hop.line)]);
      route.latency_us = std::chrono::duration<double, std::micro>(way.latency).count();
      routes->set(from, to, std::move(route));
    }
  }
  return routes;
}

std::unique_ptr<LineRoutes> of_site(const Site& site) {
  const HostCosts costs;
  auto routes = std::make_unique<LineRoutes>(site.ranks);
  const auto host = [&](int rank) {
    return site.host_of.empty() ? 0 : site.host_of[static_cast<size_t>(rank)];
  };
  std::vector<int> stores, out, in;  // by rank; by the first rank of a host
  for (int rank = 0; rank < site.ranks; ++rank) {
    stores.push_back(routes->add_line(costs.copy / simulator::kBytesPerUs));
    int first = 0;
    while (host(first) != host(rank)) ++first;
    const bool fresh = first == rank;
    out.push_back(fresh ? routes->add_line(site.network.bandwidth / simulator::kBytesPerUs)
                        : out[static_cast<size_t>(first)]);
    in.push_back(fresh ? routes->add_line(site.network.bandwidth / simulator::kBytesPerUs)
                       : in[static_cast<size_t>(first)]);
  }
  const double hop = site.crowded ? costs.crowded_hop : costs.hop;
  for (int from = 0; from < site.ranks; ++from) {
    for (int to = 0; to < site.ranks; ++to) {
      const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
      if (host(from) == host(to))
        routes->set(from, to, {{stores[f]}, hop});
      else
        routes->set(from, to, {{out[f], in[t]}, site.network.latency});
    }
  }
  return routes;
}

}  // namespace

std::unique_ptr<simulator::Routes> fused_machine(const emulated::Links* emulated,
                                                 const Site& site) {
  if (emulated != nullptr) return of_emulated(*emulated);
  return of_site(site);
}

}  // namespace tessera
