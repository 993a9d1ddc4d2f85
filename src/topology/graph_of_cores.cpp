// Cores and the caches that they share.
//
//   cpu0 (memory) --- l3.0 --- l2.0 --- core0
//                      |        `------ core1
//                      `------ core2           a cache of one core is no node
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "topology/graph_builder.h"

namespace tessera::topology {

namespace {

// Which of some sets a processor is in, so that thousands of cores and caches are not compared with
// each other.
class SetsOf {
 public:
  void add(const CpuSet& set, int number) {
    for (const int processor : set.list()) {
      if (processor >= static_cast<int>(sets_.size())) sets_.resize(processor + 1);
      sets_[processor].push_back(number);
    }
  }
  // In the order in which they were added.
  const std::vector<int>& operator[](int processor) const {
    static const std::vector<int> kNone;
    return processor < static_cast<int>(sets_.size()) ? sets_[processor] : kNone;
  }
  // The one with most processors in common; the first one if none has any.
  int nearest(const CpuSet& set) const {
    std::map<int, int> common;
    for (const int processor : set.list())
      for (const int number : (*this)[processor]) ++common[number];
    int best = 0, most = 0;
    for (const auto& [number, n] : common) {
      if (n <= most) continue;
      most = n;
      best = number;
    }
    return best;
  }

 private:
  std::vector<std::vector<int>> sets_;
};

// Caches that several cores share, the largest first; of those with the same processors, the first.
std::vector<Cache> shared_caches(const std::vector<Cache>& all, const std::vector<CpuSet>& cores) {
  SetsOf core_of;
  for (size_t i = 0; i < cores.size(); ++i) core_of.add(cores[i], static_cast<int>(i));
  std::vector<Cache> caches;
  std::set<std::string> known;
  for (const Cache& cache : all) {
    std::set<int> sharing;
    for (const int processor : cache.cpus.list()) {
      sharing.insert(core_of[processor].begin(), core_of[processor].end());
      if (sharing.size() > 1) break;
    }
    if (sharing.size() > 1 && known.insert(cache.cpus.mask()).second) caches.push_back(cache);
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const Cache& a, const Cache& b) { return a.cpus.count() > b.cpus.count(); });
  return caches;
}

}  // namespace

void GraphBuilder::add_cores(int host) {
  const CpuTopology& cpus = machine_.hosts[host].cpus;
  std::vector<CpuSet> cores;
  for (const CpuSet& core : cpus.cores) {
    if (cpus.allowed.empty() || !(cpus.allowed & core).empty()) cores.push_back(core);
  }
  const std::vector<Cache> caches = shared_caches(cpus.caches, cores);
  SetsOf cpu_of, cache_of;
  for (size_t i = 0; i < cpus_[host].size(); ++i) {
    const auto known = affinity_.find(cpus_[host][i]);
    if (known != affinity_.end()) cpu_of.add(known->second, static_cast<int>(i));
  }
  const auto cpu_near = [&](const CpuSet& set) { return cpus_[host][cpu_of.nearest(set)]; };
  // Larger ones first; the last that contains a set is the smallest
  std::vector<int> nodes;
  const auto parent_of = [&](const CpuSet& set) {
    const std::vector<int> processors = set.list();
    if (processors.empty()) return nodes.empty() ? -1 : nodes.back();
    const std::vector<int>& around = cache_of[processors.front()];
    for (auto it = around.rbegin(); it != around.rend(); ++it) {
      if (caches[*it].cpus.contains(set)) return nodes[*it];
    }
    return -1;
  };
  std::map<int, int> of_level;
  for (const Cache& cache : caches) {
    const int cpu = cpu_near(cache.cpus), above = parent_of(cache.cpus);
    const int node =
        add(NodeKind::kCache, host,
            free_name(host, fmt::format("l{}.{}", cache.level, of_level[cache.level]++)),
            fmt::format("L{} {} KiB", cache.level, cache.bytes >> 10), graph_.nodes[cpu].numa);
    if (above >= 0) {
      graph_.add_link(node, above, LinkKind::kCache, kCacheBandwidth, kCacheLatency);
    } else {
      graph_.add_link(node, cpu, LinkKind::kMemory, kMemoryBandwidth, kMemoryLatency);
    }
    cache_of.add(cache.cpus, static_cast<int>(nodes.size()));
    nodes.push_back(node);
  }
  for (const CpuSet& core : cores) {
    const int cpu = cpu_near(core), above = parent_of(core);
    const int node = add(NodeKind::kCore, host, fmt::format("core{}", count(NodeKind::kCore, host)),
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
