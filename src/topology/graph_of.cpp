#include "topology/graph_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "topology/graph_builder.h"

namespace tessera::topology {

void GraphBuilder::note(const std::string& text) {
  if (std::find(graph_.notes.begin(), graph_.notes.end(), text) == graph_.notes.end()) {
    graph_.notes.push_back(text);
  }
}

std::string GraphBuilder::free_name(int host, const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 2; graph_.find(host, name) >= 0; ++i) name = fmt::format("{}#{}", wanted, i);
  return name;
}

int GraphBuilder::add(NodeKind kind, int host, std::string name, std::string label, int64_t numa) {
  Node node;
  node.kind = kind;
  node.host = host;
  node.name = std::move(name);
  node.label = std::move(label);
  node.numa = numa;
  node.index = static_cast<int>(graph_.of_kind(kind, host).size());
  return graph_.add_node(std::move(node));
}

namespace {

// The same for both encodings of a family.
std::string model_text(const Cpu& cpu) {
  std::string text = cpu.vendor.empty() ? cpu.arch : cpu.vendor;
  if (cpu.family.given()) text += fmt::format(" family {}", plain_family(*cpu.family.value));
  if (cpu.model.given()) text += fmt::format(" model {}", *cpu.model.value);
  return text;
}

// Memory without processors, or with the processors of another node: high-bandwidth memory beside
// DRAM, or a GPU's. Devices and ranks belong to the node with the smaller id.
int twin_of(const std::map<int64_t, int>& by_numa, const std::map<int, CpuSet>& affinity,
            const CpuSet& set) {
  for (const auto& [numa, node] : by_numa) {
    const auto found = affinity.find(node);
    if (found != affinity.end() && found->second == set) return node;
  }
  return -1;
}

}  // namespace

void GraphBuilder::add_cpus_of(int host) {
  std::vector<int> order;
  for (size_t i = 0; i < machine_.cpus.size(); ++i) {
    const Cpu& cpu = machine_.cpus[i];
    if (cpu.host == host && cpu.numa.given() && *cpu.numa.value >= 0) {
      order.push_back(static_cast<int>(i));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return *machine_.cpus[a].numa.value < *machine_.cpus[b].numa.value;
  });
  std::map<int64_t, int> by_numa;
  for (const int i : order) {
    const Cpu& cpu = machine_.cpus[i];
    const int64_t numa = *cpu.numa.value;
    const auto known = by_numa.find(numa);
    if (known != by_numa.end()) {
      cpu_node_[i] = known->second;
      continue;
    }
    if (cpu.affinity.given()) {
      if (cpu.affinity.value->empty() && order.size() > 1) continue;
      const int twin = twin_of(by_numa, affinity_, *cpu.affinity.value);
      if (twin >= 0) {
        cpu_node_[i] = twin;
        continue;
      }
    }
    const int node = add(NodeKind::kCpu, host, fmt::format("cpu{}", numa), model_text(cpu), numa);
    by_numa.emplace(numa, node);
    cpu_node_[i] = node;
    cpus_[host].push_back(node);
    if (cpu.affinity.given()) affinity_[node] = *cpu.affinity.value;
  }
}

void GraphBuilder::add_cpus() {
  cpu_node_.assign(machine_.cpus.size(), -1);
  cpus_.resize(hosts_);
  smp_.assign(hosts_, 0);
  for (int host = 0; host < hosts_; ++host) {
    add_cpus_of(host);
    if (cpus_[host].empty()) {
      note(fmt::format("host {}: no NUMA node is known; one CPU is assumed", host));
      cpus_[host].push_back(add(NodeKind::kCpu, host, "cpu0", "assumed", -1));
    }
    join_cpus(host);
  }
}

// Latency relative to the node's own memory, where the description has the matrix.
double GraphBuilder::smp_latency(int host, int a, int b) const {
  if (host >= static_cast<int>(machine_.hosts.size())) return kSmpLatency;
  const CpuTopology& cpus = machine_.hosts[host].cpus;
  const size_t n = cpus.latency_nodes.size();
  if (n == 0 || cpus.latency.size() != n * n) return kSmpLatency;
  size_t row = n, column = n;
  for (size_t i = 0; i < n; ++i) {
    if (cpus.latency_nodes[i] == graph_.nodes[a].numa) row = i;
    if (cpus.latency_nodes[i] == graph_.nodes[b].numa) column = i;
  }
  if (row == n || column == n || cpus.latency[row * n + row] == 0) return kSmpLatency;
  return kMemoryLatency * static_cast<double>(cpus.latency[row * n + column]) /
         static_cast<double>(cpus.latency[row * n + row]);
}

// Per NUMA node of a host: the package that it is a part of; -1: not stated.
std::vector<int> GraphBuilder::packages_of(int host) const {
  std::vector<int> packages;
  for (const int node : cpus_[host]) {
    int found = -1;
    const auto known = affinity_.find(node);
    if (host < static_cast<int>(machine_.hosts.size()) && known != affinity_.end()) {
      const std::vector<CpuSet>& all = machine_.hosts[host].cpus.packages;
      for (size_t i = 0; i < all.size(); ++i) {
        if (!known->second.empty() && all[i].contains(known->second)) found = static_cast<int>(i);
      }
    }
    packages.push_back(found);
  }
  return packages;
}

// Nodes of one package are joined by memory's speed. Packages have one link to each other, between
// the first node of each, so that all their nodes share it:
//
//   cpu0 == cpu1      cpu2 == cpu3      cpu1 to cpu3: cpu1, cpu0, cpu2, cpu3
//     `---------------'
//
// Where packages are not stated, each node counts as one.
void GraphBuilder::join_cpus(int host) {
  const std::vector<int>& nodes = cpus_[host];
  Speed speed{0, ""};
  for (const Cpu& cpu : machine_.cpus) {
    if (cpu.host != host) continue;
    const Speed next = smp_speed(cpu);
    if (speed.bandwidth == 0 || next.bandwidth < speed.bandwidth) speed = next;
  }
  if (speed.bandwidth == 0) speed = smp_speed(Cpu{});
  smp_[host] = speed.bandwidth;
  if (nodes.size() > 1 && !speed.note.empty()) note(speed.note);
  const std::vector<int> packages = packages_of(host);
  const auto is_first = [&](size_t i) {
    return packages[i] < 0 ||
           std::find(packages.begin(), packages.end(), packages[i]) - packages.begin() ==
               static_cast<std::ptrdiff_t>(i);
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t j = i + 1; j < nodes.size(); ++j) {
      const bool together = packages[i] >= 0 && packages[i] == packages[j];
      if (!together && !(is_first(i) && is_first(j))) continue;
      const double bandwidth =
          together ? std::max(speed.bandwidth, kMemoryBandwidth) : speed.bandwidth;
      graph_.add_link(nodes[i], nodes[j], LinkKind::kSmp, bandwidth,
                      smp_latency(host, nodes[i], nodes[j]));
    }
  }
  if (nodes.size() > 2 && std::count(packages.begin(), packages.end(), -1) > 0) {
    note(
        fmt::format("which NUMA nodes share a socket is not stated: any two are joined by {} GB/s "
                    "of their own",
                    speed.bandwidth));
  }
}

Graph GraphBuilder::build() && {
  hosts_ = std::max(1, static_cast<int>(machine_.hosts.size()));
  for (const Cpu& cpu : machine_.cpus) hosts_ = std::max(hosts_, cpu.host + 1);
  graph_.hosts = hosts_;
  add_cpus();
  if (options_.cores) {
    for (int host = 0; host < static_cast<int>(machine_.hosts.size()); ++host) add_cores(host);
  }
  find_devices();
  add_switches();
  add_gpus();
  add_cards();
  add_peer_links();
  set_fan_out();
  if (hosts_ > 1) add_fabric(graph_);
  return std::move(graph_);
}

Graph graph_of(const Machine& machine, const GraphOptions& options) {
  return GraphBuilder(machine, options).build();
}

std::vector<int> stated_ranks(const Graph& graph) {
  std::vector<int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int rank = graph.nodes[i].rank;
    if (rank < 0 || rank >= static_cast<int>(graph.nodes.size())) continue;
    if (rank >= static_cast<int>(nodes.size())) nodes.resize(rank + 1, -1);
    if (nodes[rank] >= 0) return {};
    nodes[rank] = static_cast<int>(i);
  }
  if (std::find(nodes.begin(), nodes.end(), -1) != nodes.end()) return {};
  return nodes;
}

}  // namespace tessera::topology
