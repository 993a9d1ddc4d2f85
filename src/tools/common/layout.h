// Layouts of ranks on hosts as people type them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace tessera::tools {

// By rank, the host it is on: "0,0,1,1" names a host for each rank, "2x4" is two hosts of four ranks
// numbered host by host. Errors: neither of the two, or more than kMaxRanks ranks.
Result<std::vector<int>> layout_named(const std::string& text);

// Cores that this process may use, as a communicator counts them.
int usable_cores();

}  // namespace tessera::tools
