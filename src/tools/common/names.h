// Names of collectives as people type them.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"

namespace tessera::tools {

// "allreduce", "all-reduce" and "AllReduce" are one name.
std::optional<Collective> collective_named(const std::string& name);

}  // namespace tessera::tools
