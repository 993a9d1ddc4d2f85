#include "topology/affinity.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tessera::topology {
namespace {

std::string name_of(const Cpu& cpu) {
  return cpu.numa.given() && *cpu.numa.value >= 0 ? fmt::format("NUMA node {}", *cpu.numa.value)
                                                  : "the device's NUMA node";
}

// Latency from one Cpu to another; empty: not stated.
std::optional<uint64_t> latency(const CpuTopology& host, const Cpu& from, const Cpu& to) {
  if (!from.numa.given() || !to.numa.given()) return std::nullopt;
  const auto& nodes = host.latency_nodes;
  const auto row = std::find(nodes.begin(), nodes.end(), *from.numa.value) - nodes.begin();
  const auto column = std::find(nodes.begin(), nodes.end(), *to.numa.value) - nodes.begin();
  const auto size = static_cast<ptrdiff_t>(nodes.size());
  const auto at = static_cast<size_t>(row * size + column);
  if (row == size || column == size || at >= host.latency.size()) return std::nullopt;
  return host.latency[at];
}

}  // namespace

CpuSet usable_near(const Cpu& cpu, const CpuSet& allowed, std::string* warning) {
  if (warning != nullptr) warning->clear();
  CpuSet own = cpu.affinity.or_else({});
  if (allowed.empty()) return own;
  CpuSet both = own & allowed;
  if (!both.empty()) return both;
  if (warning != nullptr && !own.empty())
    *warning = fmt::format("no allowed CPU on {} (CPUs {}): using {}", name_of(cpu), own.ranges(),
                           allowed.ranges());
  return allowed;
}

CpuSet usable_near(const Machine& machine, int cpu, const CpuSet& allowed, std::string* warning) {
  const Cpu& wanted = machine.cpus[static_cast<size_t>(cpu)];
  CpuSet simple = usable_near(wanted, allowed, warning);
  if (allowed.empty() || wanted.affinity.or_else({}).empty() ||
      !(*wanted.affinity.value & allowed).empty())
    return simple;
  const CpuTopology& host = machine.hosts[static_cast<size_t>(wanted.host)].cpus;
  std::optional<uint64_t> least;
  CpuSet nearest;
  for (const Cpu& other : machine.cpus) {
    const CpuSet usable = other.affinity.or_else({}) & allowed;
    const auto distance = latency(host, wanted, other);
    if (other.host != wanted.host || usable.empty() || !distance) continue;
    // All that are equally near: one of them would be crowded.
    if (least && *distance > *least) continue;
    nearest = least && *distance == *least ? nearest | usable : usable;
    least = distance;
  }
  if (!least) return simple;
  if (warning != nullptr)
    *warning = fmt::format("no allowed CPU on {} (CPUs {}): using {}, the nearest", name_of(wanted),
                           wanted.affinity.value->ranges(), nearest.ranges());
  return nearest;
}

}  // namespace tessera::topology
