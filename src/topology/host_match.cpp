#include "topology/host_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tessera::topology {
namespace {

bool counts(const Pci& pci) {
  return (pci.kind == PciKind::kGpu || pci.kind == PciKind::kNic) && pci.bus_id.given();
}

bool lies_on(const Machine& machine, const Pci& pci, int host) {
  const auto cpu = static_cast<size_t>(pci.cpu);
  return pci.cpu < 0 || cpu >= machine.cpus.size() || machine.cpus[cpu].host == host;
}

// Those that the other one lacks.
std::vector<int> lacking(const Machine& machine, int host, const std::set<BusId>& other) {
  std::vector<int> missing;
  for (size_t i = 0; i < machine.pcis.size(); ++i) {
    const Pci& pci = machine.pcis[i];
    if (counts(pci) && lies_on(machine, pci, host) && !other.contains(*pci.bus_id.value))
      missing.push_back(static_cast<int>(i));
  }
  return missing;
}

std::set<BusId> ids_of(const Machine& machine, int host) {
  std::set<BusId> ids;
  for (const Pci& pci : machine.pcis)
    if (counts(pci) && lies_on(machine, pci, host)) ids.insert(*pci.bus_id.value);
  return ids;
}

int gpus_among(const Machine& machine, const std::vector<int>& pcis) {
  return static_cast<int>(std::count_if(pcis.begin(), pcis.end(), [&](int pci) {
    return machine.pcis[static_cast<size_t>(pci)].kind == PciKind::kGpu;
  }));
}

Warning about(const Machine& machine, int index, const char* where, int line) {
  const Pci& pci = machine.pcis[static_cast<size_t>(index)];
  return {line, fmt::format("{} {} is {}", pci.kind == PciKind::kGpu ? "GPU" : "NIC",
                            to_string(*pci.bus_id.value), where)};
}

}  // namespace

HostMatch match_host(const Machine& file, int host, const Machine& here) {
  constexpr int kHere = 0;
  HostMatch match;
  match.absent = lacking(file, host, ids_of(here, kHere));
  match.unknown = lacking(here, kHere, ids_of(file, host));
  const int gpus = gpus_among(file, lacking(file, host, {}));
  if (gpus > 0 && gpus == gpus_among(file, match.absent)) {
    match.usable = false;
    match.warnings.push_back({0, fmt::format("none of the {} GPUs in the file is on this host: the "
                                             "file is ignored",
                                             gpus)});
    return match;
  }
  for (const int pci : match.absent)
    match.warnings.push_back(about(file, pci, "in the file, not on this host",
                                   file.pcis[static_cast<size_t>(pci)].origin.line));
  for (const int pci : match.unknown)
    match.warnings.push_back(about(here, pci, "on this host, not in the file", 0));
  return match;
}

}  // namespace tessera::topology
