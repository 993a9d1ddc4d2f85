// Machines as hwloc sees them: from its XML files, from its synthetic descriptions, or this one.
//
//   Result<Machine> machine = read_hwloc_xml("dgx2.xml");
//   Result<Machine> machine = read_synthetic("pack:2 numa:1 core:8 pu:2");
//   Result<Machine> machine = discover();
//
// What becomes of hwloc's objects:
//
//   NUMANode    a Cpu, if it has processors of its own; a MemoryNode, if it is memory that others
//               share those with (MCDRAM, HBM) or that no processor is near to (GPU memory)
//   Bridge      a Pci of kind kBridge; a host bridge has class 0x060000 and no bus id
//   PCIDev      a Pci; of class 03 or 12 also a Gpu (one, however many OS devices it has), unless
//               it is the display of a management controller or of an emulator; of class 02 a Nic
//   OSDev       a name of a Gpu; or a Net of a Nic: a verbs device one per port, a network device
//               only where the card has no verbs device (both are the same port)
//   distances   the latency matrix (the first one between NUMA nodes); NVLinkBandwidth and
//               XGMIBandwidth become PeerLinks, without what XGMIHops says is more than one hop
//
// Thread safety: may be called from any thread.
#pragma once

#include <string>

#include "base/status.h"
#include "topology/hwloc_topology.h"
#include "topology/machine.h"

namespace tessera::topology {

Result<Machine> read_hwloc_xml(const std::string& path);
Result<Machine> read_synthetic(const std::string& text);
Result<Machine> discover();

Machine machine_of(const HwlocTopology& topology);

}  // namespace tessera::topology
