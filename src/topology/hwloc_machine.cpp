#include "topology/hwloc_machine.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "topology/hwloc_bitmap.h"
#include "topology/hwloc_document.h"
#include "topology/hwloc_values.h"

namespace tessera::topology {
namespace {

// Infos are texts of the system; what is no number is kept as unreadable.
Stated<int> stated_number(const std::string& text) {
  Stated<int> stated;
  if (text.empty()) return stated;
  if (const auto value = parse_number(text, INT32_MAX))
    stated.value = static_cast<int>(*value);
  else
    stated.unreadable = text;
  return stated;
}

// Memory of a kind that a program asks for, and does not get by default.
bool is_special(hwloc_obj_t node) {
  const std::string_view kind = node->subtype == nullptr ? "" : node->subtype;
  return !kind.empty() && kind != "DRAM";
}

// As the document states them, where hwloc could not keep that.
CpuSet processors_of(hwloc_obj_t node) {
  const std::string stated = info_of(node, kStatedCpuset);
  if (!stated.empty())
    if (const auto bits = parse_bitmap(stated)) return to_cpu_set(bits->get());
  return to_cpu_set(node->cpuset);
}

std::vector<CpuSet> sets_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<CpuSet> sets;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr)
    sets.push_back(to_cpu_set(object->cpuset));
  return sets;
}

// Info of the package that the object lies in, or else of any above it.
std::string inherited(hwloc_topology_t topology, hwloc_obj_t object, const char* name) {
  for (hwloc_obj_t at = object; at != nullptr; at = at->parent)
    if (std::string text = info_of(at, name); !text.empty()) return text;
  // A node above the packages: they are alike.
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  return package == nullptr ? "" : info_of(package, name);
}

}  // namespace

std::string info_of(hwloc_obj_t object, const char* name) {
  const char* text = hwloc_obj_get_info_by_name(object, name);
  return text == nullptr ? "" : text;
}

std::string place_of(hwloc_obj_t object) {
  std::string text = hwloc_obj_type_string(object->type);
  if (object->type == HWLOC_OBJ_PCI_DEVICE) {
    const auto& at = object->attr->pcidev;
    return text + " " + to_string(BusId{at.domain, at.bus, at.dev, at.func});
  }
  if (object->name != nullptr) return text + " " + object->name;
  return object->os_index == HWLOC_UNKNOWN_INDEX ? text
                                                 : text + " " + std::to_string(object->os_index);
}

void MachineOfHwloc::host() {
  const hwloc_obj_t root = hwloc_get_root_obj(topology_);
  Host host;
  host.name = info_of(root, "HostName");
  CpuTopology& cpus = host.cpus;
  cpus.packages = sets_of(topology_, HWLOC_OBJ_PACKAGE);
  cpus.cores = sets_of(topology_, HWLOC_OBJ_CORE);
  cpus.processing_units = hwloc_get_nbobjs_by_type(topology_, HWLOC_OBJ_PU);
  cpus.allowed =
      to_cpu_set(hwloc_topology_get_allowed_cpuset(topology_)) & to_cpu_set(root->cpuset);
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    hwloc_obj_t cache = nullptr;
    while ((cache = hwloc_get_next_obj_by_type(topology_, type, cache)) != nullptr)
      cpus.caches.push_back({static_cast<int>(cache->attr->cache.depth), cache->attr->cache.size,
                             to_cpu_set(cache->cpuset)});
  }
  machine_.hosts.push_back(std::move(host));
}

Cpu MachineOfHwloc::cpu_of(hwloc_obj_t node, const CpuSet& affinity) const {
  Cpu cpu;
  cpu.affinity.value = affinity;
  cpu.arch = info_of(hwloc_get_root_obj(topology_), "Architecture");
  cpu.vendor = inherited(topology_, node, "CPUVendor");
  cpu.family = stated_number(inherited(topology_, node, "CPUFamilyNumber"));
  cpu.model = stated_number(inherited(topology_, node, "CPUModelNumber"));
  return cpu;
}

// Which nodes are Cpus: ordinary memory before special, small groups of processors before large
// ones that contain them, each processor in one Cpu at most. All others are memory only.
void MachineOfHwloc::cpus() {
  struct Candidate {
    hwloc_obj_t node;
    CpuSet cpus;
    bool chosen = false;
  };
  std::vector<Candidate> nodes;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, node)) != nullptr)
    nodes.push_back({node, processors_of(node)});
  std::vector<Candidate*> order;
  order.reserve(nodes.size());
  for (Candidate& candidate : nodes) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [](const Candidate* a, const Candidate* b) {
    const bool special_a = is_special(a->node), special_b = is_special(b->node);
    return special_a != special_b ? special_b : a->cpus.count() < b->cpus.count();
  });
  CpuSet covered;
  for (Candidate* candidate : order) {
    candidate->chosen = !candidate->cpus.empty() && (candidate->cpus & covered).empty();
    if (candidate->chosen) covered = covered | candidate->cpus;
  }
  for (const Candidate& candidate : nodes) {
    const int64_t numa = candidate.node->os_index;
    const uint64_t bytes = candidate.node->attr->numanode.local_memory;
    if (!candidate.chosen) {
      const char* kind = candidate.node->subtype;
      machine_.hosts.back().cpus.memory_nodes.push_back(
          {numa, kind == nullptr ? "" : kind, bytes, candidate.cpus});
      continue;
    }
    Cpu cpu = cpu_of(candidate.node, candidate.cpus);
    cpu.numa.value = numa;
    if (bytes > 0) cpu.memory_bytes.value = bytes;  // hwloc says 0 where it does not know
    cpu_of_numa_[numa] = static_cast<int>(machine_.cpus.size());
    machine_.cpus.push_back(std::move(cpu));
  }
  latencies();
}

void MachineOfHwloc::latencies() {
  hwloc_distances_s* matrix = nullptr;
  unsigned count = 1;
  if (hwloc_distances_get_by_type(topology_, HWLOC_OBJ_NUMANODE, &count, &matrix,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      count == 0)
    return;
  CpuTopology& cpus = machine_.hosts.back().cpus;
  for (unsigned i = 0; i < matrix->nbobjs; ++i)
    cpus.latency_nodes.push_back(matrix->objs[i]->os_index);
  cpus.latency.assign(matrix->values,
                      matrix->values + static_cast<size_t>(matrix->nbobjs) * matrix->nbobjs);
  hwloc_distances_release(topology_, matrix);
}

}  // namespace tessera::topology
