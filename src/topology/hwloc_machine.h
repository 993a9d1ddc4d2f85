// Makes a Machine of a topology of hwloc, part by part. For hwloc_read.cpp.
#pragma once

#include <hwloc.h>

#include <map>
#include <string>

#include "topology/machine.h"

namespace tessera::topology {

class MachineOfHwloc {
 public:
  MachineOfHwloc(hwloc_topology_t topology, Machine& machine)
      : topology_(topology), machine_(machine) {}

  void host();     // hwloc_machine.cpp: name, packages, cores, caches
  void cpus();     // NUMA nodes and their latencies
  void devices();  // hwloc_devices.cpp: PCI tree, GPUs, NICs
  void links();    // hwloc_links.cpp: matrices between GPUs, switches, packages

 private:
  void latencies();
  Cpu cpu_of(hwloc_obj_t node, const CpuSet& affinity) const;
  int cpu_near(hwloc_obj_t object);
  int pci_of(hwloc_obj_t object, int cpu, int parent);
  void pci_tree(hwloc_obj_t object, int cpu, int parent);
  void nic(hwloc_obj_t object, int cpu, int pci);
  void net(hwloc_obj_t device, int nic, const std::string& others);
  void gpu(hwloc_obj_t object, int pci);
  void link(hwloc_obj_t from, hwloc_obj_t to, uint64_t megabytes, PeerLinkKind kind);
  int gpu_of(hwloc_obj_t object) const;
  int cpu_at(hwloc_obj_t package, int gpu) const;

  hwloc_topology_t topology_;
  Machine& machine_;
  std::map<int64_t, int> cpu_of_numa_;
  std::map<std::string, int> unknown_;      // by affinity: a Cpu without numa
  std::map<hwloc_obj_t, int> pcis_, gpus_;  // of PCI objects; OS devices that stand alone
};

// Empty where there is none.
std::string info_of(hwloc_obj_t object, const char* name);
// A short text of the object, for messages: "PCIDev 0000:17:00.0", "OSDev nvml0".
std::string place_of(hwloc_obj_t object);

}  // namespace tessera::topology
