#include "topology/hwloc_read.h"

#include "topology/hwloc_machine.h"

namespace tessera::topology {
namespace {

Result<Machine> machine_or_error(const Result<HwlocTopology>& topology) {
  if (!topology.ok()) return topology.status();
  return machine_of(topology.value());
}

}  // namespace

Machine machine_of(const HwlocTopology& topology) {
  Machine machine;
  machine.source = topology.source();
  machine.warnings = topology.warnings();
  MachineOfHwloc made(topology.get(), machine);
  made.host();
  made.cpus();
  made.devices();
  made.links();
  return machine;
}

Result<Machine> read_hwloc_xml(const std::string& path) {
  return machine_or_error(HwlocTopology::from_file(path));
}

Result<Machine> read_synthetic(const std::string& text) {
  return machine_or_error(HwlocTopology::synthetic(text));
}

}  // namespace tessera::topology
