#include "topology/support/sample_graphs.h"

#include <fmt/format.h>

#include <random>

#include "topology/link_speeds.h"

namespace tessera::topology::samples {
namespace {

int add(Graph& graph, NodeKind kind, const std::string& name, int64_t numa = 0) {
  Node node;
  node.kind = kind;
  node.name = name;
  node.numa = numa;
  node.index = static_cast<int>(graph.of_kind(kind).size());
  return graph.add_node(node);
}

int add_nic(Graph& graph, int above, int index, double bandwidth, int64_t numa) {
  const int nic = add(graph, NodeKind::kNic, fmt::format("nic{}", index), numa);
  const int port = add(graph, NodeKind::kPort, fmt::format("mlx5_{}", index), numa);
  graph.add_link(nic, above, LinkKind::kPcie, 48, kPcieLatency);
  graph.add_link(nic, port, LinkKind::kLocal, bandwidth, 0);
  return nic;
}

std::vector<int> two_cpus(Graph& graph, double smp) {
  const int a = add(graph, NodeKind::kCpu, "cpu0", 0), b = add(graph, NodeKind::kCpu, "cpu1", 1);
  graph.add_link(a, b, LinkKind::kSmp, smp, kSmpLatency);
  return {a, b};
}

}  // namespace

Graph dgx() {
  Graph graph;
  const std::vector<int> cpus = two_cpus(graph, 22);
  std::vector<int> planes;
  for (int i = 0; i < 4; ++i) {
    planes.push_back(add(graph, NodeKind::kNvSwitch, fmt::format("nvswitch{}", i), -1));
  }
  for (int i = 0; i < 8; ++i) {
    const int64_t numa = i / 4;
    const int bridge = add(graph, NodeKind::kPciSwitch, fmt::format("switch{}", i), numa);
    graph.add_link(bridge, cpus[numa], LinkKind::kPcie, 48, kPcieLatency);
    const int gpu = add(graph, NodeKind::kGpu, fmt::format("gpu{}", i), numa);
    graph.add_link(gpu, bridge, LinkKind::kPcie, 48, kPcieLatency);
    const int counts[] = {5, 5, 4, 4};
    for (int p = 0; p < 4; ++p) {
      graph.add_link(gpu, planes[p], LinkKind::kNvlink, 20.6 * counts[p], 0.3, counts[p]);
    }
    for (const double share : default_fan_out()) {
      graph.nodes[gpu].fan_out.push_back(share * 20.6 * 18);
    }
    add_nic(graph, bridge, i, 50, numa);
  }
  return graph;
}

Graph xgmi_mesh(int gpus, double bandwidth) {
  Graph graph;
  const std::vector<int> cpus = two_cpus(graph, 16);
  std::vector<int> nodes;
  for (int i = 0; i < gpus; ++i) {
    const int64_t numa = 2 * i / gpus;
    nodes.push_back(add(graph, NodeKind::kGpu, fmt::format("gpu{}", i), numa));
    graph.add_link(nodes[i], cpus[numa], LinkKind::kPcie, 48, kPcieLatency);
    for (int j = 0; j < i; ++j) {
      graph.add_link(nodes[j], nodes[i], LinkKind::kXgmi, bandwidth, kXgmiLatency);
    }
    add_nic(graph, cpus[numa], i, 50, numa);
  }
  return graph;
}

Graph xgmi_ring() {
  Graph graph;
  const int cpu = add(graph, NodeKind::kCpu, "cpu0");
  std::vector<int> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(add(graph, NodeKind::kGpu, fmt::format("gpu{}", i)));
    graph.add_link(nodes[i], cpu, LinkKind::kPcie, 12, kPcieLatency);
  }
  // 0-1-3-2-0, so that the order of the numbers is not the ring
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 3}, {3, 2}, {2, 0}}) {
    graph.add_link(nodes[a], nodes[b], LinkKind::kXgmi, 24, kXgmiLatency);
  }
  add_nic(graph, cpu, 0, 12, 0);
  return graph;
}

Graph two_sockets(int gpus, bool alternating) {
  Graph graph;
  const std::vector<int> cpus = two_cpus(graph, 10);
  std::vector<std::vector<int>> bridges(2);
  std::vector<int> below(2, 0);
  for (int i = 0; i < gpus; ++i) {
    const int64_t numa = alternating ? i % 2 : 2 * i / gpus;
    if (below[numa]++ % 2 == 0) {
      const int bridge = add(graph, NodeKind::kPciSwitch,
                             fmt::format("switch{}", bridges[0].size() + bridges[1].size()), numa);
      graph.add_link(bridge, cpus[numa], LinkKind::kPcie, 12, kPcieLatency);
      bridges[numa].push_back(bridge);
    }
    const int gpu = add(graph, NodeKind::kGpu, fmt::format("gpu{}", i), numa);
    graph.add_link(gpu, bridges[numa].back(), LinkKind::kPcie, 12, kPcieLatency);
  }
  return graph;
}

Graph cores(int sockets, int cores_per_socket) {
  Graph graph;
  std::vector<int> cpus;
  for (int s = 0; s < sockets; ++s) {
    const int cpu = add(graph, NodeKind::kCpu, fmt::format("cpu{}", s), s);
    for (const int other : cpus) {
      graph.add_link(other, cpu, LinkKind::kSmp, 16, kSmpLatency);
    }
    cpus.push_back(cpu);
    int cache = -1;
    for (int c = 0; c < cores_per_socket; ++c) {
      if (c % 4 == 0) {
        cache = add(graph, NodeKind::kCache, fmt::format("l3.{}.{}", s, c / 4), s);
        graph.add_link(cache, cpu, LinkKind::kMemory, kMemoryBandwidth, kMemoryLatency);
      }
      const int core =
          add(graph, NodeKind::kCore, fmt::format("core{}", s * cores_per_socket + c), s);
      graph.add_link(core, cache, LinkKind::kCache, kCoreBandwidth, kCacheLatency);
    }
  }
  add_nic(graph, cpus.front(), 0, 12.5, 0);
  return graph;
}

Graph single_gpu() {
  Graph graph;
  const int cpu = add(graph, NodeKind::kCpu, "cpu0");
  const int gpu = add(graph, NodeKind::kGpu, "gpu0");
  graph.add_link(gpu, cpu, LinkKind::kPcie, 24, kPcieLatency);
  add_nic(graph, cpu, 0, 25, 0);
  return graph;
}

Graph random_host(unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  Graph graph;
  std::vector<int> above;
  const int sockets = 1 + draw(3);
  for (int s = 0; s < sockets; ++s) {
    const int cpu = add(graph, NodeKind::kCpu, fmt::format("cpu{}", s), s);
    for (const int other : above) graph.add_link(other, cpu, LinkKind::kSmp, 6 + draw(30), 0.15);
    above.push_back(cpu);
  }
  const int bridges = draw(5);
  for (int b = 0; b < bridges; ++b) {
    const int bridge = add(graph, NodeKind::kPciSwitch, fmt::format("switch{}", b), -1);
    graph.add_link(bridge, above[draw(static_cast<int>(above.size()))], LinkKind::kPcie,
                   3 * (1 + draw(16)), 0.5);
    above.push_back(bridge);
  }
  const int count = 1 + draw(12), cards = draw(5);
  std::vector<int> nodes;
  for (int i = 0; i < count; ++i) {
    const int gpu = add(graph, NodeKind::kGpu, fmt::format("gpu{}", i), -1);
    graph.add_link(gpu, above[draw(static_cast<int>(above.size()))], LinkKind::kPcie,
                   3 * (1 + draw(16)), 0.5);
    for (const int other : nodes) {
      if (draw(3) == 0) graph.add_link(other, gpu, LinkKind::kXgmi, 12 * (1 + draw(4)), 0.8);
    }
    nodes.push_back(gpu);
  }
  for (int i = 0; i < cards; ++i) {
    add_nic(graph, above[draw(static_cast<int>(above.size()))], i, 3 + draw(50), -1);
  }
  return graph;
}

std::vector<int> gpus(const Graph& graph) { return graph.of_kind(NodeKind::kGpu); }

std::vector<int> core_nodes(const Graph& graph) { return graph.of_kind(NodeKind::kCore); }

}  // namespace tessera::topology::samples
