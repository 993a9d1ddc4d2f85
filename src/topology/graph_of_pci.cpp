// Bridges, GPUs, cards and their ports.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "topology/graph_builder.h"

namespace tessera::topology {
namespace {

// The positive one, or the smaller of both.
double smaller(double a, double b) {
  if (a <= 0) return b;
  if (b <= 0) return a;
  return std::min(a, b);
}

std::string bus_text(const Pci& pci) {
  return pci.bus_id.given() ? to_string(*pci.bus_id.value) : "bus id not stated";
}

}  // namespace

int GraphBuilder::root_cpu(int pci) const {
  for (size_t steps = 0; steps <= machine_.pcis.size(); ++steps) {
    const Pci& here = machine_.pcis[pci];
    if (here.parent < 0) return here.cpu;
    pci = here.parent;
  }
  return -1;
}

int GraphBuilder::host_of_pci(int pci) const {
  const int cpu = pci < 0 ? -1 : root_cpu(pci);
  return cpu < 0 ? 0 : machine_.cpus[cpu].host;
}

void GraphBuilder::mark_useful(int pci) {
  for (; pci >= 0 && !useful_[pci]; pci = machine_.pcis[pci].parent) {
    useful_[pci] = 1;
    if (machine_.pcis[pci].parent >= 0) ++below_[machine_.pcis[pci].parent];
  }
}

bool GraphBuilder::is_node(int pci) const { return pci_node_[pci] >= 0; }

void GraphBuilder::index_devices() {
  for (size_t i = 0; i < machine_.pcis.size(); ++i) {
    const Stated<BusId>& id = machine_.pcis[i].bus_id;
    if (id.given()) pcis_by_id_[*id.value].push_back(static_cast<int>(i));
  }
}

// Finds what becomes a node: GPUs, cards, and bridges above several of them.
void GraphBuilder::find_devices() {
  const size_t n = machine_.pcis.size();
  pci_node_.assign(n, -1);
  below_.assign(n, 0);
  useful_.assign(n, 0);
  peered_.assign(n, 0);
  pci_speed_.assign(n, 0);
  fastest_below_.assign(n, 0);
  std::vector<char> has_gpu(n, 0), has_nic(n, 0);
  for (size_t i = 0; i < machine_.gpus.size(); ++i) {
    const int pci = machine_.gpus[i].pci;
    if (pci >= 0) has_gpu[pci] = 1;
    gpus_.push_back({-1, host_of_pci(pci), pci, static_cast<int>(i)});
  }
  for (const Nic& nic : machine_.nics) {
    if (nic.pci >= 0) has_nic[nic.pci] = 1;
  }
  for (size_t i = 0; i < n; ++i) {
    const Pci& pci = machine_.pcis[i];
    const Speed speed = pcie_speed(pci.link_gts, pci.link_width);
    pci_speed_[i] = speed.bandwidth;
    const bool device =
        has_gpu[i] || has_nic[i] || pci.kind == PciKind::kGpu || pci.kind == PciKind::kNic;
    if (pci.kind == PciKind::kGpu && !has_gpu[i]) {
      gpus_.push_back({-1, host_of_pci(static_cast<int>(i)), static_cast<int>(i), -1});
    }
    if (device) {
      mark_useful(static_cast<int>(i));
      if (!speed.note.empty()) note(speed.note);
    }
  }
  // In the order of the description, whether or not it has `gpu` elements
  std::stable_sort(gpus_.begin(), gpus_.end(), [](const GpuDevice& a, const GpuDevice& b) {
    return std::tie(a.host, a.pci) < std::tie(b.host, b.pci);
  });
  device_of_gpu_.assign(machine_.gpus.size(), -1);
  for (size_t i = 0; i < gpus_.size(); ++i) {
    const GpuDevice& gpu = gpus_[i];
    if (gpu.gpu >= 0) device_of_gpu_[gpu.gpu] = static_cast<int>(i);
    if (gpu.pci >= 0 && machine_.pcis[gpu.pci].bus_id.given())
      gpus_by_id_[*machine_.pcis[gpu.pci].bus_id.value].push_back(static_cast<int>(i));
  }
  for (const PeerLink& link : machine_.peer_links) {
    if (link.kind != PeerLinkKind::kPciSwitch || link.pci < 0) continue;
    peered_[link.pci] = 1;
    if (!link.target_id.given()) continue;
    const auto targets = pcis_by_id_.find(*link.target_id.value);
    if (targets == pcis_by_id_.end()) continue;
    for (const int pci : targets->second) peered_[pci] = 1;
  }
  for (size_t i = n; i-- > 0;) {
    const int parent = machine_.pcis[i].parent;
    if (parent < 0) continue;
    fastest_below_[parent] = std::max({fastest_below_[parent], pci_speed_[i], fastest_below_[i]});
  }
}

// The next node above, and the smallest speed on the way, the device's own included unless
// above_only.
GraphBuilder::Place GraphBuilder::place_of(int pci, bool above_only) const {
  Place place;
  if (pci < 0) return place;
  place.host = host_of_pci(pci);
  if (!above_only) place.bandwidth = pci_speed_[pci];
  int at = machine_.pcis[pci].parent;
  for (size_t steps = 0; at >= 0 && steps <= machine_.pcis.size(); ++steps) {
    if (is_node(at)) {
      place.node = pci_node_[at];
      return place;
    }
    place.bandwidth = smaller(place.bandwidth, pci_speed_[at]);
    at = machine_.pcis[at].parent;
  }
  const int cpu = root_cpu(pci);
  if (cpu >= 0) place.cpu = cpu_node_[cpu];
  return place;
}

void GraphBuilder::attach(int node, const Place& place, double bandwidth) {
  Node& device = graph_.nodes[node];
  if (place.node >= 0) {
    device.numa = graph_.nodes[place.node].numa;
    graph_.add_link(node, place.node, LinkKind::kPcie, bandwidth, kPcieLatency);
    return;
  }
  const std::vector<int>& cpus = cpus_[place.host];
  if (place.cpu >= 0 || cpus.size() == 1) {
    const int cpu = place.cpu >= 0 ? place.cpu : cpus.front();
    device.numa = graph_.nodes[cpu].numa;
    graph_.add_link(node, cpu, LinkKind::kPcie, bandwidth, kPcieLatency);
    return;
  }
  note(
      fmt::format("{} of host {}: its NUMA node is unknown; it is as far from every node as the "
                  "other socket is",
                  device.name, place.host));
  for (const int cpu : cpus) {
    graph_.add_link(node, cpu, LinkKind::kSmp, std::min(bandwidth, smp_[place.host]),
                    kPcieLatency + kSmpLatency);
  }
}

// Parents come first in the description, so a bridge's own place is known when its turn comes.
void GraphBuilder::add_switches() {
  for (size_t i = 0; i < machine_.pcis.size(); ++i) {
    const Pci& pci = machine_.pcis[i];
    const bool device = pci.kind == PciKind::kGpu || pci.kind == PciKind::kNic;
    if (device || !useful_[i] || (below_[i] < 2 && !peered_[i])) continue;
    const int id = static_cast<int>(i);
    const Place place = place_of(id, false);
    const int node =
        add(NodeKind::kPciSwitch, place.host,
            fmt::format("switch{}", count(NodeKind::kPciSwitch, place.host)), bus_text(pci), -1);
    double bandwidth = place.bandwidth;
    if (bandwidth <= 0) {
      bandwidth = fastest_below_[i] > 0 ? fastest_below_[i] : kPcieUnknown;
      note(
          fmt::format("PCIe speed of some bridges is not stated: that of the fastest device below, "
                      "or {} GB/s",
                      kPcieUnknown));
    }
    attach(node, place, bandwidth);
    pci_node_[i] = node;
  }
}

void GraphBuilder::add_gpus() {
  std::map<std::pair<int, std::string>, int> sharing;
  const auto key = [&](const GpuDevice& gpu) {
    if (gpu.pci < 0) return std::make_pair(gpu.host, std::string("-"));
    const Pci& pci = machine_.pcis[gpu.pci];
    return std::make_pair(gpu.host, pci.bus_id.given() ? to_string(*pci.bus_id.value)
                                                       : fmt::format("pci {}", gpu.pci));
  };
  for (const GpuDevice& gpu : gpus_) ++sharing[key(gpu)];
  for (GpuDevice& gpu : gpus_) {
    Place place = place_of(gpu.pci, false);
    place.host = gpu.host;
    const std::string label = gpu.pci < 0 ? "no bus id" : bus_text(machine_.pcis[gpu.pci]);
    gpu.node = add(NodeKind::kGpu, gpu.host, fmt::format("gpu{}", count(NodeKind::kGpu, gpu.host)),
                   label, -1);
    if (gpu.gpu >= 0) graph_.nodes[gpu.node].rank = machine_.gpus[gpu.gpu].rank.or_else(-1);
    double bandwidth = place.bandwidth;
    if (bandwidth <= 0) {
      bandwidth = kPcieUnknown;
      note(fmt::format("PCIe speed of some GPUs is not stated: {} GB/s", kPcieUnknown));
    }
    const int instances = gpu.pci < 0 ? 1 : sharing[key(gpu)];
    if (instances > 1) {
      // Straight to the CPU: between instances there is no way but host memory
      note(
          fmt::format("{} GPUs of host {} are {}: each has a part of its link, and no direct path "
                      "to the others",
                      instances, gpu.host, label));
      place.node = -1;
      const int cpu = root_cpu(gpu.pci);
      place.cpu = cpu < 0 ? -1 : cpu_node_[cpu];
      bandwidth /= instances;
    }
    attach(gpu.node, place, bandwidth);
    if (gpu.pci >= 0 && pci_node_[gpu.pci] < 0) pci_node_[gpu.pci] = gpu.node;
  }
}

}  // namespace tessera::topology
