// Devices: the PCI tree, and what of it is a GPU or a network card.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "topology/console_display.h"
#include "topology/hwloc_bitmap.h"
#include "topology/hwloc_machine.h"
#include "topology/hwloc_topology.h"
#include "topology/hwloc_values.h"

namespace tessera::topology {
namespace {

constexpr uint32_t kHostBridge = 0x060000;

// hwloc has class and subclass; the programming interface is not kept.
uint32_t class_of(hwloc_obj_t object) { return uint32_t{object->attr->pcidev.class_id} << 8; }
unsigned base_class(hwloc_obj_t object) { return object->attr->pcidev.class_id >> 8; }

PciKind kind_of(hwloc_obj_t object) {
  if (object->type == HWLOC_OBJ_BRIDGE) return PciKind::kBridge;
  const unsigned base = base_class(object);
  const auto& pci = object->attr->pcidev;
  if (base == 0x03 || base == 0x12)
    return is_console_display(pci.vendor_id, pci.device_id) ? PciKind::kOther : PciKind::kGpu;
  return base == 0x02 ? PciKind::kNic : PciKind::kOther;
}

// The number at the front: "16.0 GT/s PCIe", "200 Gb/sec (4X HDR)".
Stated<double> leading_number(const std::string& text) {
  Stated<double> stated;
  if (text.empty()) return stated;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && value > 0 && value < 1e9)
    stated.value = value;
  else
    stated.unreadable = text;  // "Unknown", "-1"
  return stated;
}

std::string hex_id(unsigned id) { return id == 0 ? "" : fmt::format("0x{:04x}", id); }

void link_of(hwloc_obj_t object, Pci& pci) {
  // 0: hwloc does not know. Single precision is all there is.
  // hwloc writes six decimals: more would not be read again.
  const double gigabytes = std::round(object->attr->pcidev.linkspeed * 1e6) / 1e6;
  if (gigabytes > 0) pci.link_gigabytes.value = gigabytes;
  pci.link_gts = leading_number(info_of(object, kLinkSpeed));
  const std::string width = info_of(object, kLinkWidth);
  constexpr uint64_t kMostLanes = 32;
  if (width.empty()) return;
  // 255: the kernel's "unknown"
  if (const auto lanes = parse_number(width, kMostLanes); lanes && *lanes > 0)
    pci.link_width.value = static_cast<int>(*lanes);
  else
    pci.link_width.unreadable = width;
}

// "248a:0703:00a1:b2c3"
Stated<uint64_t> guid_of(const std::string& text) {
  Stated<uint64_t> stated;
  if (text.empty()) return stated;
  std::string digits;
  for (char c : text)
    if (c != ':') digits += c;
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (error == std::errc() && stop == end)
    stated.value = value;
  else
    stated.unreadable = text;
  return stated;
}

// 3 of "nvml3".
Stated<int> number_after(const std::string& name, std::string_view prefix) {
  Stated<int> stated;
  if (!name.starts_with(prefix)) return stated;
  if (const auto value = parse_number(std::string_view(name).substr(prefix.size()), 1 << 16))
    stated.value = static_cast<int>(*value);
  return stated;
}

bool is_gpu_device(hwloc_obj_t device) {
  return device->type == HWLOC_OBJ_OS_DEVICE &&
         (device->attr->osdev.type == HWLOC_OBJ_OSDEV_GPU ||
          device->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC);
}

bool is_net_device(hwloc_obj_t device, hwloc_obj_osdev_type_t type) {
  return device->type == HWLOC_OBJ_OS_DEVICE && device->attr->osdev.type == type;
}

}  // namespace

// The Cpu of the one node that is nearest. Of several, or none: a Cpu without numa, for all
// devices of that place together.
int MachineOfHwloc::cpu_near(hwloc_obj_t object) {
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology_, object);
  const CpuSet affinity = to_cpu_set(place == nullptr ? nullptr : place->cpuset);
  int found = -1, count = 0;
  for (const auto& [numa, cpu] : cpu_of_numa_) {
    const CpuSet& own = *machine_.cpus[static_cast<size_t>(cpu)].affinity.value;
    if ((own & affinity).empty()) continue;
    found = cpu;
    ++count;
  }
  if (count == 1) return found;
  if (cpu_of_numa_.size() == 1) return cpu_of_numa_.begin()->second;
  const auto [at, added] = unknown_.try_emplace(affinity.mask(), 0);
  if (added) {
    at->second = static_cast<int>(machine_.cpus.size());
    machine_.cpus.push_back(cpu_of(place, affinity));
  }
  return at->second;
}

void MachineOfHwloc::devices() {
  // The tops of all I/O trees, in the order of the tree.
  std::vector<hwloc_obj_t> stack{hwloc_get_root_obj(topology_)};
  while (!stack.empty()) {
    const hwloc_obj_t at = stack.back();
    stack.pop_back();
    for (hwloc_obj_t io = at->io_first_child; io != nullptr; io = io->next_sibling)
      pci_tree(io, cpu_near(io), -1);
    for (hwloc_obj_t child = at->last_child; child != nullptr; child = child->prev_sibling)
      stack.push_back(child);
  }
}

int MachineOfHwloc::pci_of(hwloc_obj_t object, int cpu, int parent) {
  Pci pci;
  pci.cpu = cpu;
  pci.parent = parent;
  pci.kind = kind_of(object);
  if (object->type == HWLOC_OBJ_BRIDGE &&
      object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
    const auto& below = object->attr->bridge.downstream.pci;
    pci.pci_class.value = kHostBridge;
    pci.name = fmt::format("host bridge {:04x}:[{:02x}-{:02x}]", below.domain, below.secondary_bus,
                           below.subordinate_bus);
  } else {
    const auto& at = object->attr->pcidev;
    pci.bus_id.value = BusId{at.domain, at.bus, at.dev, at.func};
    pci.pci_class.value = class_of(object);
    pci.vendor = hex_id(at.vendor_id);
    pci.device = hex_id(at.device_id);
    pci.subsystem_vendor = hex_id(at.subvendor_id);
    pci.subsystem_device = hex_id(at.subdevice_id);
    pci.name = info_of(object, "PCIDevice");
    link_of(object, pci);
  }
  const int index = static_cast<int>(machine_.pcis.size());
  pcis_[object] = index;
  machine_.pcis.push_back(std::move(pci));
  return index;
}

void MachineOfHwloc::pci_tree(hwloc_obj_t object, int cpu, int parent) {
  if (object->type == HWLOC_OBJ_OS_DEVICE) {
    // Without a place on the bus: sysfs is masked, or the bus is none that hwloc knows.
    if (is_gpu_device(object)) gpu(object, -1);
    if (is_net_device(object, HWLOC_OBJ_OSDEV_NETWORK) ||
        is_net_device(object, HWLOC_OBJ_OSDEV_OPENFABRICS))
      nic(object, cpu, -1);
    return;
  }
  const int index = pci_of(object, cpu, parent);
  const PciKind kind = machine_.pcis[static_cast<size_t>(index)].kind;
  if (kind == PciKind::kGpu) gpu(object, index);
  if (kind == PciKind::kNic) nic(object, cpu, index);
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling)
    if (child->type != HWLOC_OBJ_OS_DEVICE) pci_tree(child, cpu, index);
}

void MachineOfHwloc::gpu(hwloc_obj_t object, int pci) {
  Gpu gpu;
  gpu.pci = pci;
  if (pci < 0) gpu.names.emplace_back(object->name == nullptr ? "" : object->name);
  for (hwloc_obj_t device = object->io_first_child; device != nullptr;
       device = device->next_sibling)
    if (is_gpu_device(device) && device->name != nullptr) gpu.names.emplace_back(device->name);
  for (const char* prefix : {"nvml", "rsmi", "cuda"})
    for (const std::string& name : gpu.names)
      if (!gpu.device.given()) gpu.device = number_after(name, prefix);
  gpus_[object] = static_cast<int>(machine_.gpus.size());
  machine_.gpus.push_back(std::move(gpu));
}

// `object`: a PCI function, or a network device that has none.
void MachineOfHwloc::nic(hwloc_obj_t object, int cpu, int pci) {
  const int index = static_cast<int>(machine_.nics.size());
  machine_.nics.push_back({.cpu = cpu, .pci = pci, .others = {}, .origin = {}});
  if (pci < 0) return net(object, index, "");
  std::string networks;
  bool verbs = false;
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
    verbs = verbs || is_net_device(child, HWLOC_OBJ_OSDEV_OPENFABRICS);
    if (is_net_device(child, HWLOC_OBJ_OSDEV_NETWORK) && child->name != nullptr)
      networks += (networks.empty() ? "" : " ") + std::string(child->name);
  }
  const auto type = verbs ? HWLOC_OBJ_OSDEV_OPENFABRICS : HWLOC_OBJ_OSDEV_NETWORK;
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling)
    if (is_net_device(child, type)) net(child, index, verbs ? networks : "");
}

void MachineOfHwloc::net(hwloc_obj_t device, int nic, const std::string& others) {
  Net net;
  net.nic = nic;
  net.name = device->name == nullptr ? "" : device->name;
  if (!others.empty()) net.others.push_back({"netdev", others});
  if (is_net_device(device, HWLOC_OBJ_OSDEV_NETWORK)) {
    const std::string speed = info_of(device, kNetSpeed);
    if (speed != "-1") net.megabits = leading_number(speed);  // the kernel's "unknown"
    machine_.nets.push_back(std::move(net));
    return;
  }
  net.guid = guid_of(info_of(device, "NodeGUID"));
  constexpr int kMostPorts = 16;
  bool any = false;
  for (int port = 1; port <= kMostPorts; ++port) {
    const std::string rate = info_of(device, fmt::format(kPortRate, port).c_str());
    const bool known = !info_of(device, fmt::format("Port{}State", port).c_str()).empty();
    if (rate.empty() && !known) continue;
    Net one = net;
    one.port.value = port;
    one.megabits = leading_number(rate);
    if (one.megabits.given()) *one.megabits.value *= 1000;  // Gb/s there
    machine_.nets.push_back(std::move(one));
    any = true;
  }
  if (!any) machine_.nets.push_back(std::move(net));
}

}  // namespace tessera::topology
