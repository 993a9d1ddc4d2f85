// A topology as an XML document of hwloc 2, which read_hwloc_xml() and the tools of hwloc read.
#pragma once

#include <string>

#include "base/status.h"
#include "topology/hwloc_topology.h"

namespace tessera::topology {

// Read back, it gives an equal Machine.
Result<std::string> write_hwloc_xml(const HwlocTopology& topology);

}  // namespace tessera::topology
