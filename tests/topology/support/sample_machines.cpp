#include "topology/support/sample_machines.h"

#include <cstdio>
#include <utility>

namespace tessera::topology::samples {
namespace {

BusId id_of(const std::string& text) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  std::sscanf(text.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function);
  return {domain, static_cast<uint8_t>(bus), static_cast<uint8_t>(device),
          static_cast<uint8_t>(function)};
}

Pci pci_of(const std::string& bus_id, int cpu, int parent, double gts, int width, PciKind kind) {
  Pci pci;
  pci.cpu = parent < 0 ? cpu : -1;
  pci.parent = parent;
  pci.bus_id.value = id_of(bus_id);
  pci.kind = kind;
  if (gts > 0) {
    pci.link_gts.value = gts;
    pci.link_width.value = width;
  }
  return pci;
}

}  // namespace

MachineBuilder::MachineBuilder() {
  machine.hosts.emplace_back();
  machine.peer_links_stated = true;
}

int MachineBuilder::cpu(int64_t numa, const std::string& vendor, int family, int model) {
  Cpu cpu;
  cpu.numa.value = numa;
  cpu.arch = "x86_64";
  cpu.vendor = vendor;
  cpu.family.value = family;
  cpu.model.value = model;
  machine.cpus.push_back(std::move(cpu));
  return static_cast<int>(machine.cpus.size()) - 1;
}

int MachineBuilder::bridge(const std::string& bus_id, int cpu, int parent, double gts, int width) {
  machine.pcis.push_back(pci_of(bus_id, cpu, parent, gts, width, PciKind::kBridge));
  return static_cast<int>(machine.pcis.size()) - 1;
}

int MachineBuilder::gpu(const std::string& bus_id, int cpu, int parent, double gts, int width) {
  machine.pcis.push_back(pci_of(bus_id, cpu, parent, gts, width, PciKind::kGpu));
  Gpu& gpu = machine.gpus.emplace_back();
  gpu.pci = static_cast<int>(machine.pcis.size()) - 1;
  gpu.rank.value = static_cast<int>(machine.gpus.size()) - 1;
  gpu.compute_capability.value = 80;
  gpu.gcn = "gfx942";
  return static_cast<int>(machine.gpus.size()) - 1;
}

int MachineBuilder::instance(int gpu) {
  machine.gpus.push_back(machine.gpus[gpu]);
  machine.gpus.back().rank.value = static_cast<int>(machine.gpus.size()) - 1;
  return static_cast<int>(machine.gpus.size()) - 1;
}

int MachineBuilder::nic(const std::string& bus_id, int cpu, const std::string& name,
                        double megabits, uint64_t guid, int parent, double gts) {
  Nic nic;
  nic.cpu = cpu;
  if (!bus_id.empty()) {
    machine.pcis.push_back(pci_of(bus_id, cpu, parent, gts, 16, PciKind::kNic));
    nic.pci = static_cast<int>(machine.pcis.size()) - 1;
  }
  machine.nics.push_back(std::move(nic));
  const int index = static_cast<int>(machine.nics.size()) - 1;
  if (!name.empty()) port(index, name, megabits, guid);
  return index;
}

int MachineBuilder::port(int nic, const std::string& name, double megabits, uint64_t guid) {
  Net net;
  net.nic = nic;
  net.name = name;
  if (megabits > 0) net.megabits.value = megabits;
  net.port.value = 1;
  net.guid.value = guid;
  machine.nets.push_back(std::move(net));
  return static_cast<int>(machine.nets.size()) - 1;
}

void MachineBuilder::link(PeerLinkKind kind, int gpu, const std::string& target, int count,
                          uint32_t target_class) {
  PeerLink link;
  link.kind = kind;
  link.gpu = gpu;
  link.target = target;
  if (!target.starts_with("ffff")) link.target_id.value = id_of(target);
  link.target_class.value = target_class;
  link.count.value = count;
  machine.peer_links.push_back(std::move(link));
}

void MachineBuilder::pci_link(int pci, const std::string& target) {
  PeerLink link;
  link.kind = PeerLinkKind::kPciSwitch;
  link.pci = pci;
  link.target = target;
  link.target_id.value = id_of(target);
  machine.peer_links.push_back(std::move(link));
}

}  // namespace tessera::topology::samples
