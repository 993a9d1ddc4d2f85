#include <fmt/format.h>

#include <algorithm>

#include "topology/graph_builder.h"

namespace tessera::topology {
namespace {

// A card at the host's first CPU, or at whatever is there.
int assume_port(Graph& graph, int host) {
  std::vector<int> at = graph.of_kind(NodeKind::kCpu, host);
  for (size_t i = 0; at.empty() && i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].host == host) at.push_back(static_cast<int>(i));
  }
  const auto make = [&](NodeKind kind, const char* name) {
    Node node;
    node.kind = kind;
    node.host = host;
    node.name = name;
    node.label = "assumed";
    return graph.add_node(std::move(node));
  };
  const int nic = make(NodeKind::kNic, "assumed-nic"), port = make(NodeKind::kPort, "assumed-port");
  // As good for each GPU as for any other
  for (const int cpu : at) {
    graph.add_link(nic, cpu, LinkKind::kPcie, kPcieUnknown, kPcieLatency);
    if (graph.nodes[cpu].kind != NodeKind::kCpu) break;
  }
  graph.add_link(nic, port, LinkKind::kLocal, kNetworkUnknown, 0);
  return port;
}

double port_bandwidth(const Graph& graph, int port) {
  double bandwidth = 0;
  for (const int link : graph.out[port]) {
    bandwidth = std::max(bandwidth, graph.links[link].bandwidth);
  }
  return bandwidth > 0 ? bandwidth : kNetworkUnknown;
}

}  // namespace

void add_fabric(Graph& graph) {
  Node node;
  node.kind = NodeKind::kFabric;
  node.host = -1;
  node.name = "fabric";
  const int fabric = graph.add_node(std::move(node));
  std::vector<std::vector<int>> ports(graph.hosts);
  for (const int port : graph.of_kind(NodeKind::kPort)) {
    ports[graph.nodes[port].host].push_back(port);
  }
  int assumed = 0;
  for (int host = 0; host < graph.hosts; ++host) {
    if (ports[host].empty()) {
      ports[host].push_back(assume_port(graph, host));
      ++assumed;
    }
    for (const int port : ports[host]) {
      graph.add_link(port, fabric, LinkKind::kNetwork, port_bandwidth(graph, port),
                     kNetworkLatency);
    }
  }
  if (assumed > 0) {
    graph.notes.push_back(
        fmt::format("{} of {} hosts have no port that is known: 10 Gb/s Ethernet is assumed",
                    assumed, graph.hosts));
  }
}

Graph replicate(const Graph& host, int copies) {
  Graph graph;
  graph.notes = host.notes;
  graph.hosts = host.hosts * std::max(1, copies);
  for (int copy = 0; copy < std::max(1, copies); ++copy) {
    std::vector<int> at(host.nodes.size(), -1);
    for (size_t i = 0; i < host.nodes.size(); ++i) {
      if (host.nodes[i].kind == NodeKind::kFabric) continue;
      Node node = host.nodes[i];
      node.host += copy * host.hosts;
      node.rank = -1;
      at[i] = graph.add_node(std::move(node));
    }
    for (size_t i = 0; i < host.links.size(); ++i) {
      const Link& link = host.links[i];
      if (link.reverse < static_cast<int>(i) || at[link.from] < 0 || at[link.to] < 0) continue;
      graph.add_link(at[link.from], at[link.to], link.kind, link.bandwidth, link.latency,
                     link.count);
    }
  }
  if (graph.hosts > 1) add_fabric(graph);
  return graph;
}

}  // namespace tessera::topology
