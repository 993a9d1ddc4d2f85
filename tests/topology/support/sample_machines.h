// Machines made by hand, as a reader of descriptions would leave them.
#pragma once

#include <string>

#include "topology/machine.h"

namespace tessera::topology::samples {

inline constexpr PeerLinkKind kXgmi = PeerLinkKind::kXgmi, kNvlink = PeerLinkKind::kNvlink;

// Appends to a machine of one host. Each returns the index of what it added.
class MachineBuilder {
 public:
  MachineBuilder();
  int cpu(int64_t numa, const std::string& vendor = "GenuineIntel", int family = 6,
          int model = 143);
  int bridge(const std::string& bus_id, int cpu, int parent = -1, double gts = 16, int width = 16);
  // A PCI device with a `gpu` element; gts 0: its link is not stated.
  int gpu(const std::string& bus_id, int cpu, int parent = -1, double gts = 16, int width = 16);
  // Another GPU on the same PCI device.
  int instance(int gpu);
  // A function of a card with one port.
  int nic(const std::string& bus_id, int cpu, const std::string& name, double megabits,
          uint64_t guid = 0, int parent = -1, double gts = 16);
  // One more port of the same `nic` element.
  int port(int nic, const std::string& name, double megabits, uint64_t guid = 0);
  void link(PeerLinkKind kind, int gpu, const std::string& target, int count,
            uint32_t target_class = 0x030200);
  void pci_link(int pci, const std::string& target);

  Machine machine;
};

}  // namespace tessera::topology::samples
