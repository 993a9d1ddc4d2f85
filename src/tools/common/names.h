// Names of collectives as people type them.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "base/types.h"

namespace tessera::tools {

// "allreduce", "all-reduce" and "AllReduce" are one name. Error: none of `allowed` (nothing: any)
// is called so; it lists those that there are.
Result<Collective> collective_named(const std::string& name,
                                    std::span<const Collective> allowed = {});

}  // namespace tessera::tools
