// Cores and the caches that they share.
//
//   cpu0 (memory) --- l3.0 --- l2.0 --- core0
//                      |        `------ core1
//                      `------ core2           a cache of one core is no node
#include <fmt/format.h>

#include <algorithm>

#include "topology/graph_builder.h"

namespace tessera::topology {

// The NUMA node with most processors in common; the first one if none has any.
int GraphBuilder::cpu_near(int host, const CpuSet& set) const {
  int best = cpus_[host].front(), most = 0;
  for (const int node : cpus_[host]) {
    const auto found = affinity_.find(node);
    const int common = found == affinity_.end() ? 0 : (found->second & set).count();
    if (common > most) {
      most = common;
      best = node;
    }
  }
  return best;
}

void GraphBuilder::add_cores(int host) {
  const CpuTopology& cpus = machine_.hosts[host].cpus;
  struct Shared {
    CpuSet set;
    int node = -1;
  };
  const auto usable = [&](const CpuSet& set) {
    return cpus.allowed.empty() || !(cpus.allowed & set).empty();
  };
  std::vector<CpuSet> cores;
  for (const CpuSet& core : cpus.cores) {
    if (usable(core)) cores.push_back(core);
  }
  std::vector<Cache> caches;
  for (const Cache& cache : cpus.caches) {
    int sharing = 0;
    for (const CpuSet& core : cores) sharing += (cache.cpus & core).empty() ? 0 : 1;
    const bool twin = std::any_of(caches.begin(), caches.end(),
                                  [&](const Cache& other) { return other.cpus == cache.cpus; });
    if (sharing > 1 && !twin) caches.push_back(cache);
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const Cache& a, const Cache& b) { return a.cpus.count() > b.cpus.count(); });
  // Larger ones first; the last that contains a set is the smallest
  std::vector<Shared> nodes;
  const auto parent_of = [&](const CpuSet& set) {
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      if (it->set.contains(set)) return it->node;
    }
    return -1;
  };
  std::map<int, int> of_level;
  for (const Cache& cache : caches) {
    const int cpu = cpu_near(host, cache.cpus), above = parent_of(cache.cpus);
    const int node =
        add(NodeKind::kCache, host,
            free_name(host, fmt::format("l{}.{}", cache.level, of_level[cache.level]++)),
            fmt::format("L{} {} KiB", cache.level, cache.bytes >> 10), graph_.nodes[cpu].numa);
    if (above >= 0) {
      graph_.add_link(node, above, LinkKind::kCache, kCacheBandwidth, kCacheLatency);
    } else {
      graph_.add_link(node, cpu, LinkKind::kMemory, kMemoryBandwidth, kMemoryLatency);
    }
    nodes.push_back({cache.cpus, node});
  }
  for (const CpuSet& core : cores) {
    const int cpu = cpu_near(host, core), above = parent_of(core);
    const int node = add(NodeKind::kCore, host,
                         fmt::format("core{}", graph_.of_kind(NodeKind::kCore, host).size()),
                         fmt::format("processors {}", core.ranges()), graph_.nodes[cpu].numa);
    graph_.add_link(node, above >= 0 ? above : cpu,
                    above >= 0 ? LinkKind::kCache : LinkKind::kMemory, kCoreBandwidth,
                    above >= 0 ? kCacheLatency : kMemoryLatency);
  }
  if (!cores.empty()) {
    note(fmt::format("bandwidths of cores, caches and memory are not stated: {}, {} and {} GB/s",
                     kCoreBandwidth, kCacheBandwidth, kMemoryBandwidth));
  }
}

}  // namespace tessera::topology
