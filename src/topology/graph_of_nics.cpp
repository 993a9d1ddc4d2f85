// Cards and ports.
//
// A card is what has one domain:bus:device: its functions share a slot. A guid says nothing about
// that, except where the position is unknown: without a bus id of its own, or within a bridge.
#include <fmt/format.h>

#include <algorithm>

#include "topology/graph_builder.h"

namespace tessera::topology {
namespace {

// Megabits written as kilobits, or the like.
constexpr double kAbsurdFactor = 4;
constexpr double kAbsurdPort = 400;  // GB/s

std::string slot_text(const BusId& id) {
  return fmt::format("{:04x}:{:02x}:{:02x}", id.domain, id.bus, id.device);
}

}  // namespace

void GraphBuilder::add_cards() {
  std::map<std::string, size_t> known;
  std::vector<char> has_nic(machine_.pcis.size(), 0);
  const auto card = [&](const std::string& key, int host, int pci, int cpu) -> Card& {
    const auto [at, fresh] = known.emplace(key, cards_.size());
    if (fresh) cards_.push_back({host, pci, cpu, 0, {}});
    Card& found = cards_[at->second];
    if (pci >= 0 && pci_speed_[pci] > 0 && (found.stated <= 0 || pci_speed_[pci] < found.stated)) {
      found.stated = pci_speed_[pci];
    }
    return found;
  };
  // With the parent: a bus id may occur several times below different bridges
  const auto slot_key = [&](int pci) {
    const Pci& here = machine_.pcis[pci];
    const std::string slot =
        here.bus_id.given() ? slot_text(*here.bus_id.value) : fmt::format("pci {}", pci);
    return fmt::format("{} {} {}", host_of_pci(pci), here.parent, slot);
  };
  std::vector<std::vector<int>> nets_of(machine_.nics.size());
  for (size_t j = 0; j < machine_.nets.size(); ++j) {
    const int nic = machine_.nets[j].nic;
    if (nic >= 0) nets_of[nic].push_back(static_cast<int>(j));
  }
  for (size_t i = 0; i < machine_.nics.size(); ++i) {
    const Nic& nic = machine_.nics[i];
    const int host =
        nic.pci >= 0 ? host_of_pci(nic.pci) : (nic.cpu >= 0 ? machine_.cpus[nic.cpu].host : 0);
    const bool placed = nic.pci >= 0 && machine_.pcis[nic.pci].kind != PciKind::kBridge;
    if (nic.pci >= 0) has_nic[nic.pci] = 1;
    if (placed) card(slot_key(nic.pci), host, nic.pci, nic.cpu);
    for (const int j : nets_of[i]) {
      const Net& net = machine_.nets[j];
      std::string key =
          placed ? slot_key(nic.pci) : fmt::format("nic {} guid {}", i, net.guid.or_else(0));
      if (!placed && net.guid.or_else(0) == 0) key = fmt::format("nic {} net {}", i, j);
      card(key, host, nic.pci, nic.cpu).nets.push_back(j);
    }
  }
  for (size_t i = 0; i < machine_.pcis.size(); ++i) {
    if (machine_.pcis[i].kind != PciKind::kNic || has_nic[i]) continue;
    const int pci = static_cast<int>(i);
    card(slot_key(pci), host_of_pci(pci), pci, -1);
  }
  for (const Card& each : cards_) add_card(each);
}

void GraphBuilder::add_card(const Card& card) {
  const bool in_bridge = card.pci >= 0 && machine_.pcis[card.pci].kind == PciKind::kBridge;
  Place place = place_of(card.pci, in_bridge);
  if (card.pci < 0 && card.cpu >= 0) place.cpu = cpu_node_[card.cpu];
  if (in_bridge && is_node(card.pci)) place.node = pci_node_[card.pci];
  place.host = card.host;
  double slot = place.bandwidth;
  if (card.stated > 0) slot = slot > 0 ? std::min(slot, card.stated) : card.stated;
  if (slot <= 0) {
    double needed = 0;
    for (const int net : card.nets) needed += network_speed(machine_.nets[net].megabits).bandwidth;
    slot = needed > kAbsurdPort ? kPcieUnknown : std::max(needed, kPcieUnknown);
    note(fmt::format("PCIe speed of some NICs is not stated: {} GB/s, or what their ports need",
                     kPcieUnknown));
  }
  std::string label = "no position";
  if (card.pci >= 0 && machine_.pcis[card.pci].bus_id.given()) {
    label = slot_text(*machine_.pcis[card.pci].bus_id.value);
  }
  const int nic = add(NodeKind::kNic, card.host,
                      fmt::format("nic{}", count(NodeKind::kNic, card.host)), label, -1);
  attach(nic, place, slot);
  if (card.pci >= 0 && pci_node_[card.pci] < 0 && !in_bridge) pci_node_[card.pci] = nic;
  add_ports(card, nic, slot);
}

void GraphBuilder::add_ports(const Card& card, int nic, double slot) {
  const int64_t numa = graph_.nodes[nic].numa;
  for (const int i : card.nets) {
    const Net& net = machine_.nets[i];
    std::string name = net.name.empty() ? graph_.nodes[nic].name + ":port" : net.name;
    if (is_taken(card.host, name) && net.port.given()) {
      name += fmt::format(":{}", *net.port.value);
    }
    name = free_name(card.host, name);
    const Speed speed = network_speed(net.megabits);
    double bandwidth = speed.bandwidth;
    if (!speed.note.empty()) note(fmt::format("port {}: {}", name, speed.note));
    if (bandwidth > kAbsurdFactor * slot) {
      note(fmt::format("port {} states {} GB/s, its slot carries {} GB/s: the latter", name,
                       bandwidth, slot));
      bandwidth = slot;
    }
    const int port =
        add(NodeKind::kPort, card.host, name, fmt::format("{:g} GB/s", bandwidth), numa);
    graph_.add_link(nic, port, LinkKind::kLocal, bandwidth, net.latency_us.or_else(0));
  }
  if (card.nets.empty()) {
    const std::string name = free_name(card.host, graph_.nodes[nic].name + ":port");
    note("no port is stated for some NICs: one each is assumed, as fast as its slot");
    const int port = add(NodeKind::kPort, card.host, name, "assumed", numa);
    graph_.add_link(nic, port, LinkKind::kLocal, slot, 0);
  }
}

}  // namespace tessera::topology
