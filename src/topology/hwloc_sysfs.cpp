// What sysfs says about devices and hwloc 2 does not hold: the speed and width of PCI links, the
// rates of network ports.
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "topology/hwloc_topology.h"

namespace tessera::topology {
namespace {

// The first line; empty where there is none, or where the device has gone meanwhile.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void add(hwloc_obj_t object, const std::string& name, const std::string& path) {
  const std::string text = line_of(path);
  if (!text.empty()) hwloc_obj_add_info(object, name.c_str(), text.c_str());
}

void add_link(hwloc_obj_t object, const std::string& sysfs) {
  const auto& pci = object->attr->pcidev;
  const std::string folder = fmt::format("{}/bus/pci/devices/{:04x}:{:02x}:{:02x}.{:x}/", sysfs,
                                         pci.domain, pci.bus, pci.dev, pci.func);
  add(object, kLinkSpeed, folder + "current_link_speed");
  add(object, kLinkWidth, folder + "current_link_width");
}

void add_rates(hwloc_obj_t object, const std::string& sysfs) {
  if (object->name == nullptr) return;
  if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
    add(object, kNetSpeed, fmt::format("{}/class/net/{}/speed", sysfs, object->name));
  if (object->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS) return;
  constexpr int kMostPorts = 16;
  for (int port = 1; port <= kMostPorts; ++port)
    add(object, fmt::format(kPortRate, port),
        fmt::format("{}/class/infiniband/{}/ports/{}/rate", sysfs, object->name, port));
}

}  // namespace

void add_sysfs_infos(hwloc_topology_t topology, const std::string& sysfs) {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_pcidev(topology, object)) != nullptr) add_link(object, sysfs);
  while ((object = hwloc_get_next_bridge(topology, object)) != nullptr)
    if (object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) add_link(object, sysfs);
  while ((object = hwloc_get_next_osdev(topology, object)) != nullptr) add_rates(object, sysfs);
}

}  // namespace tessera::topology
