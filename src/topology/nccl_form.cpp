#include "topology/nccl_form.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "topology/at.h"
#include "topology/nccl_xml_check.h"

namespace tessera::topology {
namespace {

// Bus ids that no device of the machine has.
class FreeIds {
 public:
  explicit FreeIds(const Machine& machine) {
    for (const Pci& pci : machine.pcis)
      if (pci.bus_id.given()) taken_.insert(*pci.bus_id.value);
  }
  BusId next() {
    constexpr uint32_t kLastDomain = 0xffff, kDevices = 1 << 13;  // bus and device
    for (;; ++count_) {
      const uint32_t number = count_ % kDevices;
      const BusId id{kLastDomain - count_ / kDevices, static_cast<uint8_t>(number >> 5),
                     static_cast<uint8_t>(number & 31), 0};
      if (taken_.insert(id).second) return id;
    }
  }

 private:
  std::set<BusId> taken_;
  uint32_t count_ = 0;
};

// A gpu lies in a pci, and where that is nobody knows.
void place_gpus(Machine& machine, FreeIds& ids) {
  int unknown = -1;
  for (Gpu& gpu : machine.gpus) {
    if (gpu.pci >= 0) continue;
    if (unknown < 0) {
      unknown = static_cast<int>(machine.cpus.size());
      machine.cpus.emplace_back();
    }
    Pci pci;
    pci.cpu = unknown;
    pci.bus_id.value = ids.next();
    pci.pci_class.value = 0x030200;
    gpu.pci = static_cast<int>(machine.pcis.size());
    machine.pcis.push_back(std::move(pci));
  }
  for (PeerLink& link : machine.peer_links)
    if (link.gpu >= 0) link.pci = at(machine.gpus, link.gpu).pci;
}

// The pcis in the order of these places; others are gone, and what lies below them is moved up.
void keep(Machine& machine, const std::vector<int>& order) {
  std::vector<int> place(machine.pcis.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) at(place, order[i]) = static_cast<int>(i);
  const auto moved = [&](int pci) {
    while (pci >= 0 && at(place, pci) < 0) pci = at(machine.pcis, pci).parent;
    return pci < 0 ? -1 : at(place, pci);
  };
  std::vector<Pci> kept;
  kept.reserve(order.size());
  for (const int pci : order) {
    kept.push_back(at(machine.pcis, pci));
    kept.back().parent = moved(kept.back().parent);
  }
  for (Gpu& gpu : machine.gpus) gpu.pci = moved(gpu.pci);
  for (Nic& nic : machine.nics) nic.pci = moved(nic.pci);
  for (PeerLink& link : machine.peer_links) link.pci = moved(link.pci);
  machine.pcis = std::move(kept);
}

// Whether a pci holds something else than pcis.
std::vector<char> holders(const Machine& machine) {
  std::vector<char> holds(machine.pcis.size());
  const auto mark = [&](int pci) {
    if (pci >= 0) at(holds, pci) = 1;
  };
  for (const Gpu& gpu : machine.gpus) mark(gpu.pci);
  for (const Nic& nic : machine.nics) mark(nic.pci);
  for (const PeerLink& link : machine.peer_links) mark(link.pci);
  return holds;
}

void drop_bridges_without_id(Machine& machine) {
  const std::vector<char> holds = holders(machine);
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(machine.pcis.size()); ++i) {
    const Pci& pci = at(machine.pcis, i);
    if (!pci.bus_id.absent() || pci.kind != PciKind::kBridge || at(holds, i) != 0)
      order.push_back(i);
  }
  keep(machine, order);
}

// Sorts a list by a key; the new place of each element.
template <class Part, class Key>
std::vector<int> sort_by(std::vector<Part>& parts, Key key) {
  std::vector<int> order(parts.size()), place(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return key(at(parts, a)) < key(at(parts, b)); });
  std::vector<Part> sorted;
  sorted.reserve(parts.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(std::move(at(parts, order[i])));
    at(place, order[i]) = static_cast<int>(i);
  }
  parts = std::move(sorted);
  return place;
}

// hwloc lists devices as its tree has them; a file has them below their cpus.
void sort_by_cpu(Machine& machine) {
  std::vector<int> order(machine.pcis.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return at(machine.pcis, a).cpu < at(machine.pcis, b).cpu; });
  keep(machine, order);
  const auto cpu_of = [&](int pci) { return pci < 0 ? -1 : at(machine.pcis, pci).cpu; };
  const auto gpus = sort_by(machine.gpus, [&](const Gpu& gpu) { return cpu_of(gpu.pci); });
  const auto nics = sort_by(machine.nics, [](const Nic& nic) { return nic.cpu; });
  for (Net& net : machine.nets) net.nic = at(nics, net.nic);
  for (PeerLink& link : machine.peer_links)
    if (link.gpu >= 0) link.gpu = at(gpus, link.gpu);
  sort_by(machine.nets, [&](const Net& net) { return at(machine.nics, net.nic).cpu; });
  sort_by(machine.peer_links, [&](const PeerLink& link) { return cpu_of(link.pci); });
}

}  // namespace

Machine in_nccl_form(Machine machine) {
  if (!machine.version.given()) machine.version = {1, std::nullopt};
  FreeIds ids(machine);
  place_gpus(machine, ids);
  drop_bridges_without_id(machine);
  sort_by_cpu(machine);
  for (Host& host : machine.hosts) {
    host.name.clear();
    host.cpus = {};
  }
  for (Cpu& cpu : machine.cpus) {
    if (cpu.numa.absent()) cpu.numa.value = -1;
    cpu.memory_bytes = {};
  }
  for (Pci& pci : machine.pcis) {
    if (pci.bus_id.absent()) pci.bus_id.value = ids.next();
    pci.link_gigabytes = {};
    pci.name.clear();
  }
  for (Gpu& gpu : machine.gpus) gpu.names.clear();
  for (PeerLink& link : machine.peer_links) {
    if (link.target_id.absent()) link.target.clear();
    if (link.target.empty() && link.target_id.given())
      link.target = to_string(*link.target_id.value);
    link.target_cpu = -1;
  }
  machine.peer_links_stated = !machine.gpus.empty() || !machine.peer_links.empty();
  classify_pcis(machine);
  return machine;
}

}  // namespace tessera::topology
