#include "topology/nccl_xml_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "topology/console_display.h"
#include "topology/text.h"

namespace tessera::topology {
namespace {

constexpr uint32_t kBridgeClass = 0x0604;    // class and subclass
constexpr uint32_t kNvSwitchClass = 0x0680;  // NVSwitch, and CPUs that NVLink reaches

const Pci& pci_at(const Machine& machine, int index) {
  return machine.pcis[static_cast<size_t>(index)];
}

std::string name_of(const Machine& machine, int pci) {
  if (pci < 0) return "without position on the bus";
  const Stated<BusId>& id = pci_at(machine, pci).bus_id;
  if (id.given()) return to_string(*id.value);
  return id.absent() ? "without bus id" : shown(*id.unreadable);
}

void check_kinds(const Machine& machine, Warnings& warnings) {
  for (size_t i = 0; i < machine.pcis.size(); ++i) {
    const Pci& pci = machine.pcis[i];
    if (pci.kind == PciKind::kUnknown)
      warnings.add(pci.origin.line, fmt::format("pci {}: no class and nothing below it: what it is "
                                                "stays unknown",
                                                name_of(machine, static_cast<int>(i))));
  }
}

// By host and id, so that a file of many hosts may have the same ids on all of them.
using PlacedId = std::pair<int, BusId>;

struct PlacedIdHash {
  size_t operator()(const PlacedId& placed) const {
    const BusId& id = placed.second;
    const uint64_t device = uint64_t{id.bus} << 16 | uint64_t{id.device} << 8 | id.function;
    return std::hash<uint64_t>()(uint64_t{id.domain} << 32 ^ device ^
                                 static_cast<uint64_t>(placed.first) * 0x9e3779b97f4a7c15);
  }
};

struct Occurrence {
  int first = -1;  // pci
  int count = 0;
};
using Occurrences = std::unordered_map<PlacedId, Occurrence, PlacedIdHash>;

int host_of(const Machine& machine, const Pci& pci) {
  return machine.cpus[static_cast<size_t>(pci.cpu)].host;
}

Occurrences occurrences(const Machine& machine) {
  Occurrences all;
  for (size_t i = 0; i < machine.pcis.size(); ++i) {
    const Pci& pci = machine.pcis[i];
    if (!pci.bus_id.given()) continue;
    Occurrence& seen = all[{host_of(machine, pci), *pci.bus_id.value}];
    if (seen.count++ == 0) seen.first = static_cast<int>(i);
  }
  return all;
}

void check_duplicates(const Machine& machine, const Occurrences& all, Warnings& warnings) {
  for (size_t i = 0; i < machine.pcis.size(); ++i) {
    const Pci& pci = machine.pcis[i];
    if (!pci.bus_id.given()) continue;
    const Occurrence& seen = all.at({host_of(machine, pci), *pci.bus_id.value});
    if (seen.count > 1 && seen.first == static_cast<int>(i))
      warnings.add(pci.origin.line,
                   fmt::format("pci {}: this bus id occurs {} times: kept as separate devices",
                               to_string(*pci.bus_id.value), seen.count));
  }
}

void check_bridges(const Machine& machine, Warnings& warnings) {
  std::vector<double> fastest_below(machine.pcis.size());
  for (const Pci& pci : machine.pcis)
    if (pci.parent >= 0) {
      double& fastest = fastest_below[static_cast<size_t>(pci.parent)];
      fastest = std::max(fastest, pcie_megabits(pci));
    }
  for (size_t i = 0; i < machine.pcis.size(); ++i) {
    const Pci& pci = machine.pcis[i];
    const double own = pcie_megabits(pci);
    if (own > 0 && own < fastest_below[i])
      warnings.add(
          pci.origin.line,
          fmt::format("pci {}: {:.1f} GB/s, slower than a device below it, {:.1f} GB/s: "
                      "taken as it is, a bottleneck",
                      name_of(machine, static_cast<int>(i)), own / 8000, fastest_below[i] / 8000));
  }
}

// Speeds that ports are sold with, Mb/s.
bool nominal(double megabits) {
  static constexpr std::array<double, 21> kSpeeds = {
      10,    100,   1000,  2500,  5000,  8000,   10000,  14000,  16000,  20000,  25000,
      32000, 40000, 50000, 54000, 56000, 100000, 200000, 400000, 800000, 1600000};
  return std::find(kSpeeds.begin(), kSpeeds.end(), megabits) != kSpeeds.end();
}

void check_ports(Machine& machine, Warnings& warnings) {
  constexpr double kMost = 1e7;  // Mb/s; several times what the fastest port does
  constexpr double kLeast = 1e-3;
  constexpr double kLongest = 1e6;  // us
  for (Net& net : machine.nets) {
    if (net.latency_us.given() && *net.latency_us.value > kLongest) {
      warnings.add(net.origin.line,
                   fmt::format("net {}: latency {} us is more than a second: taken "
                               "as unknown",
                               shown(net.name), *net.latency_us.value));
      net.latency_us = {std::nullopt, fmt::format("{}", *net.latency_us.value)};
    }
    if (!net.megabits.given()) continue;
    const int pci = machine.nics[static_cast<size_t>(net.nic)].pci;
    const double speed = *net.megabits.value;
    const double link = pci < 0 ? 0 : pcie_megabits(pci_at(machine, pci));
    const std::string stated =
        fmt::format("net {} {}: speed {:.0f} Mb/s", shown(net.name), name_of(machine, pci), speed);
    if (speed > kMost && link > 0) {
      net.megabits.value = link;
      warnings.add(net.origin.line,
                   fmt::format("{} is more than any port has (in kb/s it would be {:.0f} Mb/s): "
                               "limited to the PCIe link, {:.0f} Mb/s",
                               stated, speed / 1000, link));
    } else if (speed > kMost || (speed > 0 && speed < kLeast)) {
      net.megabits = {std::nullopt, fmt::format("{}", speed)};
      warnings.add(net.origin.line, fmt::format("{} is {} than any port has: taken as unknown",
                                                stated, speed > kMost ? "more" : "less"));
    } else if (!nominal(speed)) {
      warnings.add(net.origin.line, stated + " is not a nominal speed: taken as it is");
    }
  }
}

// Nodes of one machine mostly have equally many CPUs; one that differs may be a slip in its mask.
void check_node_sizes(const Machine& machine, Warnings& warnings) {
  std::map<int, std::map<int, int>> nodes_by_size;  // per host
  for (const Cpu& cpu : machine.cpus)
    if (cpu.affinity.given()) ++nodes_by_size[cpu.host][cpu.affinity.value->count()];
  for (const Cpu& cpu : machine.cpus) {
    if (!cpu.affinity.given()) continue;
    const std::map<int, int>& sizes = nodes_by_size[cpu.host];
    const auto usual = std::max_element(sizes.begin(), sizes.end(), [](auto& a, auto& b) {
      return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    });
    const int count = cpu.affinity.value->count();
    if (count != usual->first)
      warnings.add(cpu.origin.line,
                   fmt::format("cpu numaid={}: {} CPUs, other nodes have {}: taken as it is",
                               cpu.numa.or_else(-1), count, usual->first));
  }
}

// Nodes of one host share no processors and no id. As NCCL does, each id is taken as a node of its
// own.
void check_twins(const Machine& machine, Warnings& warnings) {
  std::map<std::pair<int, std::string>, const Cpu*> known;  // host, mask
  std::map<std::pair<int, int64_t>, const Cpu*> by_id;
  for (const Cpu& cpu : machine.cpus) {
    if (cpu.numa.or_else(-1) < 0) continue;
    const auto [same_id, new_id] = by_id.try_emplace({cpu.host, *cpu.numa.value}, &cpu);
    if (!new_id) {
      warnings.add(cpu.origin.line,
                   fmt::format("cpu numaid={}: the same id as in line {}: taken as one node",
                               *cpu.numa.value, same_id->second->origin.line));
      continue;
    }
    if (!cpu.affinity.given() || cpu.affinity.value->empty()) continue;
    const auto [first, fresh] = known.try_emplace({cpu.host, cpu.affinity.value->mask()}, &cpu);
    if (fresh) continue;
    warnings.add(
        cpu.origin.line,
        fmt::format("cpu numaid={}: the same affinity as numaid={} of line {}: kept apart",
                    *cpu.numa.value, *first->second->numa.value, first->second->origin.line));
  }
}

bool leads_to_switch(const PeerLink& link) {
  return link.target_class.given() && *link.target_class.value >> 8 == kNvSwitchClass;
}

void check_link_targets(const Machine& machine, const Occurrences& all, Warnings& warnings) {
  std::set<PlacedId> assumed;
  for (const PeerLink& link : machine.peer_links) {
    if (link.kind == PeerLinkKind::kC2c) continue;
    const std::string place =
        fmt::format("link of {} to {}", name_of(machine, link.pci), shown(link.target));
    const Pci& own = pci_at(machine, link.pci);
    if (link.target_id.absent()) {
      warnings.add(link.origin.line,
                   fmt::format("link of {}: states no target", name_of(machine, link.pci)));
    } else if (!link.target_id.given()) {
      const bool hidden = leads_to_switch(link) || link.target.starts_with("fffffff:");
      warnings.add(link.origin.line, place + (hidden ? ": a hidden switch, common to all such links"
                                                     : ": the target cannot be read"));
    } else if (const PlacedId target{host_of(machine, own), *link.target_id.value};
               !all.contains(target)) {
      if (!leads_to_switch(link))
        warnings.add(link.origin.line, place + ": leads to a device that is not listed");
      else if (assumed.insert(target).second)
        warnings.add(link.origin.line, place + ": a switch that is not listed, taken as existing");
    }
  }
}

}  // namespace

double pcie_megabits(const Pci& pci) {
  if (!pci.link_gts.given() || !pci.link_width.given()) return 0;
  const double gts = *pci.link_gts.value;
  // 8 of 10 bits are data in the first two generations, 128 of 130 (or more) since.
  const double code = gts < 8 ? 0.8 : 128.0 / 130.0;
  return gts * 1000 * *pci.link_width.value * code;
}

namespace {

// By the texts of the file: "0x102b".
bool is_console(const Pci& pci) {
  const auto id_of = [](std::string_view text) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    return parse_hex(text).value_or(0);
  };
  return is_console_display(id_of(pci.vendor), id_of(pci.device));
}

}  // namespace

void classify_pcis(Machine& machine) {
  const size_t count = machine.pcis.size();
  std::vector<bool> gpu(count), nic(count), bridge(count);
  for (const Gpu& part : machine.gpus)
    if (part.pci >= 0) gpu[static_cast<size_t>(part.pci)] = true;
  for (const Nic& part : machine.nics)
    if (part.pci >= 0) nic[static_cast<size_t>(part.pci)] = true;
  for (const Pci& part : machine.pcis)
    if (part.parent >= 0) bridge[static_cast<size_t>(part.parent)] = true;
  for (size_t i = 0; i < count; ++i) {
    Pci& pci = machine.pcis[i];
    const uint32_t code = pci.pci_class.or_else(0);
    const uint32_t base = code >> 16;
    const bool accelerator = base == 0x03 || base == 0x12;
    if (gpu[i] || (accelerator && !is_console(pci)))
      pci.kind = PciKind::kGpu;
    else if (nic[i] || base == 0x02)
      pci.kind = PciKind::kNic;
    else if (bridge[i] || code >> 8 == kBridgeClass)
      pci.kind = PciKind::kBridge;
    else
      pci.kind = pci.pci_class.given() ? PciKind::kOther : PciKind::kUnknown;
  }
}

void check_nccl_machine(Machine& machine, Warnings& warnings) {
  classify_pcis(machine);
  const Occurrences all = occurrences(machine);
  check_node_sizes(machine, warnings);
  check_twins(machine, warnings);
  check_kinds(machine, warnings);
  check_duplicates(machine, all, warnings);
  check_bridges(machine, warnings);
  check_ports(machine, warnings);
  check_link_targets(machine, all, warnings);
}

}  // namespace tessera::topology
