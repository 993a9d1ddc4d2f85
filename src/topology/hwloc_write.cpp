#include "topology/hwloc_write.h"

#include <cerrno>
#include <cstring>

namespace tessera::topology {

Result<std::string> write_hwloc_xml(const HwlocTopology& topology) {
  char* buffer = nullptr;
  int size = 0;
  constexpr unsigned long kNewestSchema = 0;
  const auto alone = alone_with_xml();
  if (hwloc_topology_export_xmlbuffer(topology.get(), &buffer, &size, kNewestSchema) != 0)
    return Status::error(Code::kSystem, "{}: hwloc cannot write it: {}", topology.source(),
                         std::strerror(errno));
  // The size counts the zero at the end.
  std::string text(buffer, size > 0 ? static_cast<size_t>(size) - 1 : 0);
  hwloc_free_xmlbuffer(topology.get(), buffer);
  return text;
}

}  // namespace tessera::topology
