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

std::string GraphBuilder::free_name(int host, const std::string& wanted) {
  if (!is_taken(host, wanted)) return wanted;
  int& suffix = suffixes_.try_emplace({host, wanted}, 1).first->second;
  std::string name;
  do {
    name = fmt::format("{}#{}", wanted, ++suffix);
  } while (is_taken(host, name));
  return name;
}

int GraphBuilder::count(NodeKind kind, int host) const {
  const auto known = counts_.find({host, kind});
  return known == counts_.end() ? 0 : known->second;
}

int GraphBuilder::add(NodeKind kind, int host, std::string name, std::string label, int64_t numa) {
  Node node;
  node.kind = kind;
  node.host = host;
  node.name = std::move(name);
  node.label = std::move(label);
  node.numa = numa;
  node.index = counts_[{host, kind}]++;
  names_.emplace(host, node.name);
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
    // Memory without processors
    if (cpu.affinity.given() && cpu.affinity.value->empty() && order.size() > 1) continue;
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
  std::vector<char> is_first(nodes.size());
  std::set<int> seen;
  for (size_t i = 0; i < nodes.size(); ++i)
    is_first[i] = packages[i] < 0 || seen.insert(packages[i]).second;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t j = i + 1; j < nodes.size(); ++j) {
      const bool together = packages[i] >= 0 && packages[i] == packages[j];
      if (!together && (is_first[i] == 0 || is_first[j] == 0)) continue;
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
  index_devices();
  find_devices();
  add_switches();
  add_gpus();
  add_cards();
  add_peer_links();
  set_fan_out();
  if (hosts_ > 1) add_fabric(graph_);
  const bool any = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                               [](const Node& node) { return node.rank >= 0; });
  if (any && stated_ranks(graph_).empty()) {
    note("the ranks that are stated are not 0 to n - 1, each once: they do not count");
  }
  return std::move(graph_);
}

Graph graph_of(const Machine& machine, const GraphOptions& options) {
  return GraphBuilder(machine, options).build();
}

std::vector<int> stated_ranks(const Graph& graph) {
  std::vector<int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int rank = graph.nodes[i].rank;
    if (rank < 0) continue;
    if (rank >= static_cast<int>(graph.nodes.size())) return {};
    if (rank >= static_cast<int>(nodes.size())) nodes.resize(rank + 1, -1);
    if (nodes[rank] >= 0) return {};
    nodes[rank] = static_cast<int>(i);
  }
  if (std::find(nodes.begin(), nodes.end(), -1) != nodes.end()) return {};
  return nodes;
}

}  // namespace tessera::topology
