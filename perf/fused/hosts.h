// Hosts for ranks that are threads: network namespaces, each known by a process that lives in it.
// Thread safety: any thread.
#pragma once

#include <vector>

namespace perf::fused {

// The calling thread, which is to be this rank, enters its host: of so many hosts each gets a run of
// ranks. No hosts: stays where it is. Errors end the program with a message.
void enter_host(const std::vector<int>& pids, int rank, int ranks);

}  // namespace perf::fused
