// Small machines for the tests of the simulator.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/routes.h"

namespace tessera::simulator::machines {

// A graph and the ranks on it. Ranks sit on the nodes in `nodes`.
struct Machine {
  topology::Graph graph;
  std::vector<int> nodes;
  TableRoutes routes() const { return TableRoutes(graph, nodes); }
};

inline topology::Node node_of(topology::NodeKind kind, const std::string& name) {
  topology::Node node;
  node.kind = kind;
  node.name = name;
  return node;
}

// Every rank has a link of its own to every other.
inline Machine full(int ranks, double gbs, double latency_us) {
  Machine machine;
  for (int r = 0; r < ranks; ++r) {
    machine.nodes.push_back(
        machine.graph.add_node(node_of(topology::NodeKind::kGpu, "gpu" + std::to_string(r))));
  }
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b)
      machine.graph.add_link(machine.nodes[a], machine.nodes[b], topology::LinkKind::kNvlink, gbs,
                             latency_us);
  }
  return machine;
}

// Every rank has one link to a switch that never is the bottleneck; half of the latency each way.
inline Machine star(int ranks, double gbs, double latency_us,
                    topology::NodeKind kind = topology::NodeKind::kGpu) {
  Machine machine;
  const int hub = machine.graph.add_node(node_of(topology::NodeKind::kNvSwitch, "switch"));
  for (int r = 0; r < ranks; ++r) {
    machine.nodes.push_back(machine.graph.add_node(node_of(kind, "gpu" + std::to_string(r))));
    machine.graph.add_link(machine.nodes.back(), hub, topology::LinkKind::kNvlink, gbs,
                           latency_us / 2);
  }
  return machine;
}

// A star's routes without a search, for thousands of ranks.
class StarRoutes : public Routes {
 public:
  explicit StarRoutes(const Machine& machine) : machine_(machine) {
    for (const int node : machine.nodes) up_.push_back(machine.graph.out[node].front());
  }
  const topology::Graph& graph() const override { return machine_.graph; }
  int ranks() const override { return static_cast<int>(machine_.nodes.size()); }
  int node(int rank) const override { return machine_.nodes[rank]; }
  Result<Route> route(int from, int to) const override {
    const topology::Link& up = machine_.graph.links[up_[from]];
    const int down = machine_.graph.links[up_[to]].reverse;
    return Route{{up_[from], down}, up.latency + machine_.graph.links[down].latency};
  }

 private:
  const Machine& machine_;
  std::vector<int> up_;
};

}  // namespace tessera::simulator::machines
