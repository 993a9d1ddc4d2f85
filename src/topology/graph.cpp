#include "topology/graph.h"

#include <utility>

namespace tessera::topology {

int Graph::add_node(Node node) {
  const int id = static_cast<int>(nodes.size());
  nodes.push_back(std::move(node));
  out.emplace_back();
  return id;
}

int Graph::add_link(int from, int to, LinkKind kind, double bandwidth, double latency, int count) {
  const int there = static_cast<int>(links.size());
  const int back = there + 1;
  links.push_back({from, to, kind, bandwidth, latency, count, back});
  links.push_back({to, from, kind, bandwidth, latency, count, there});
  out[static_cast<size_t>(from)].push_back(there);
  out[static_cast<size_t>(to)].push_back(back);
  return there;
}

int Graph::find(int host, const std::string& name) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].host == host && nodes[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> Graph::of_kind(NodeKind kind, int host) const {
  std::vector<int> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == kind && (host < 0 || nodes[i].host == host)) {
      found.push_back(static_cast<int>(i));
    }
  }
  return found;
}

const char* to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::kCpu:
      return "cpu";
    case NodeKind::kCore:
      return "core";
    case NodeKind::kCache:
      return "cache";
    case NodeKind::kGpu:
      return "gpu";
    case NodeKind::kPciSwitch:
      return "switch";
    case NodeKind::kNvSwitch:
      return "nvswitch";
    case NodeKind::kNic:
      return "nic";
    case NodeKind::kPort:
      return "port";
    case NodeKind::kFabric:
      return "fabric";
  }
  return "?";
}

const char* to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::kLocal:
      return "local";
    case LinkKind::kNvlink:
      return "nvlink";
    case LinkKind::kXgmi:
      return "xgmi";
    case LinkKind::kC2c:
      return "c2c";
    case LinkKind::kCache:
      return "cache";
    case LinkKind::kMemory:
      return "memory";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kSmp:
      return "smp";
    case LinkKind::kNetwork:
      return "network";
  }
  return "?";
}

}  // namespace tessera::topology
