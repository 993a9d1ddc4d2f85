// How much memory this process may still take: the least of what the system and its control groups
// leave.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::host {

// Bytes. Counts free and reclaimable memory and free swap; understands control groups of version 1
// and 2, the limits of all enclosing groups included. What cannot be read does not limit. The
// folders are parameters for the sake of tests.
uint64_t available_memory(const std::string& proc = "/proc",
                          const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace tessera::host
