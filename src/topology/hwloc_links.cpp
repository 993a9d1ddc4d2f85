// Matrices of bandwidths between GPUs, NVLink switches and packages, as PeerLinks.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/hwloc_bitmap.h"
#include "topology/hwloc_machine.h"

namespace tessera::topology {
namespace {

constexpr uint32_t kSwitchClass = 0x068000;

struct Release {
  hwloc_topology_t topology;
  void operator()(hwloc_distances_s* matrix) const { hwloc_distances_release(topology, matrix); }
};
using Matrix = std::unique_ptr<hwloc_distances_s, Release>;

// The first of that name; null: none.
Matrix matrix_named(hwloc_topology_t topology, const char* name) {
  hwloc_distances_s* matrix = nullptr;
  unsigned count = 1;
  if (hwloc_distances_get_by_name(topology, name, &count, &matrix, 0) != 0 || count == 0)
    matrix = nullptr;
  return Matrix(matrix, Release{topology});
}

// A device of a PCI device stands for it: a GPU has one for each of its programming interfaces.
hwloc_obj_t pci_device_of(hwloc_obj_t object) {
  if (object->type == HWLOC_OBJ_OS_DEVICE && object->parent != nullptr &&
      object->parent->type == HWLOC_OBJ_PCI_DEVICE)
    return object->parent;
  return object;
}

using Hops = std::map<std::pair<hwloc_obj_t, hwloc_obj_t>, uint64_t>;

Hops hops_of(hwloc_topology_t topology) {
  Hops hops;
  const Matrix matrix = matrix_named(topology, "XGMIHops");
  if (matrix == nullptr) return hops;
  const unsigned n = matrix->nbobjs;
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < n; ++j)
      hops[{matrix->objs[i], matrix->objs[j]}] = matrix->values[size_t{i} * n + j];
  return hops;
}

}  // namespace

int MachineOfHwloc::gpu_of(hwloc_obj_t object) const {
  const auto found = gpus_.find(object);
  return found == gpus_.end() ? -1 : found->second;
}

// The Cpu within the package: the GPU's own if that is one of them.
int MachineOfHwloc::cpu_at(hwloc_obj_t package, int gpu) const {
  const CpuSet inside = to_cpu_set(package->cpuset);
  const int pci = machine_.gpus[static_cast<size_t>(gpu)].pci;
  const int own = pci < 0 ? -1 : machine_.pcis[static_cast<size_t>(pci)].cpu;
  int found = -1;
  for (const auto& [numa, cpu] : cpu_of_numa_) {
    if ((*machine_.cpus[static_cast<size_t>(cpu)].affinity.value & inside).empty()) continue;
    if (found < 0 || cpu == own) found = cpu;
  }
  return found;
}

void MachineOfHwloc::link(hwloc_obj_t from, hwloc_obj_t to, uint64_t megabytes, PeerLinkKind kind) {
  // Links of switches and packages are stated once, by the GPU.
  const int gpu = gpu_of(from);
  if (gpu < 0) return;
  PeerLink link;
  link.kind = kind;
  link.gpu = gpu;
  link.megabytes.value = static_cast<double>(megabytes);
  link.target = place_of(to);
  if (to->type == HWLOC_OBJ_PCI_DEVICE) {
    const auto& at = to->attr->pcidev;
    link.target_id.value = BusId{at.domain, at.bus, at.dev, at.func};
    link.target = to_string(*link.target_id.value);
    const bool gpu_there = gpu_of(to) >= 0;
    // One that cannot be read has class 0; that it is a switch is known from the matrix.
    link.target_class.value = gpu_there ? uint32_t{at.class_id} << 8 : kSwitchClass;
  } else if (to->type == HWLOC_OBJ_OS_DEVICE) {
    link.target_id.unreadable = link.target;
  } else {
    link.kind = PeerLinkKind::kC2c;
    link.target_cpu = cpu_at(to, gpu);
    if (link.target_cpu < 0) return;
  }
  machine_.peer_links.push_back(std::move(link));
}

void MachineOfHwloc::links() {
  const Hops hops = hops_of(topology_);
  for (const auto& [name, kind] : {std::pair{"NVLinkBandwidth", PeerLinkKind::kNvlink},
                                   std::pair{"XGMIBandwidth", PeerLinkKind::kXgmi}}) {
    const Matrix matrix = matrix_named(topology_, name);
    if (matrix == nullptr) continue;
    machine_.peer_links_stated = true;
    const unsigned n = matrix->nbobjs;
    for (unsigned i = 0; i < n; ++i)
      for (unsigned j = 0; j < n; ++j) {
        const uint64_t megabytes = matrix->values[size_t{i} * n + j];
        const hwloc_obj_t from = matrix->objs[i], to = matrix->objs[j];
        if (megabytes == 0 || from == nullptr || to == nullptr) continue;
        const hwloc_obj_t near = pci_device_of(from), far = pci_device_of(to);
        if (near == far) continue;  // the diagonal is the device's own memory
        const auto distance = hops.find({from, to});
        if (distance != hops.end() && distance->second != 1) continue;
        link(near, far, megabytes, kind);
      }
  }
}

}  // namespace tessera::topology
