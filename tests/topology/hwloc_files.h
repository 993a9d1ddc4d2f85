// What the tests of the hwloc reader share: the folder of recorded files, and what hwloc holds.
#pragma once

#include <hwloc.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tessera::topology::testing {

// $TESSERA_SHARED/topologies, or shared/topologies beside the source folder; the file may be
// absent.
inline std::string recorded(const std::string& name) {
  const char* shared = std::getenv("TESSERA_SHARED");
  // .../tests/topology/hwloc_files.h
  const std::filesystem::path beside =
      std::filesystem::path(__FILE__).parent_path() / "../../../shared";
  return (std::filesystem::path(shared == nullptr ? beside : shared) / "topologies" / name)
      .string();
}

inline int objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  return hwloc_get_nbobjs_by_type(topology, type);
}

}  // namespace tessera::topology::testing
