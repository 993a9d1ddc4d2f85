// Where a rank's threads may run, near a device.
//
// The file or discovery says which processors are near; the kernel says which ones the process may
// use (cgroup, launcher). The answer is never empty and never outside of what is allowed: binding
// to such a set would fail.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "topology/machine.h"

namespace tessera::topology {

// The allowed processors of that Cpu; if it has none (or its affinity is not known), all allowed.
// An empty `allowed` means "not known": the Cpu's own. `warning`, if given, is set to one line
// where none of the Cpu's processors is allowed, and is emptied otherwise.
CpuSet usable_near(const Cpu& cpu, const CpuSet& allowed, std::string* warning = nullptr);

// The same for the machine's Cpu of that index, but if it has no allowed processor, then those of
// the nearest Cpu that has, by the latency matrix of its host.
CpuSet usable_near(const Machine& machine, int cpu, const CpuSet& allowed,
                   std::string* warning = nullptr);

}  // namespace tessera::topology
