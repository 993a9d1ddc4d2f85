// The command "fused": the plan of a fused operator of a matrix in tiles.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/status.h"
#include "fusion/description.h"
#include "plan/plan.h"

namespace tessera::tools {

struct FusedOptions {
  std::string collective, map = "direct", type = "float32", svg;
  int ranks = 0;
  FusedDescription matrix;
  bool json = false, onto = false;
};

// `options` must outlive the parsing.
CLI::App* add_fused_command(CLI::App& app, FusedOptions& options);

// Error: a description that a fused operator would refuse.
Result<Plan> fused_plan_of(const FusedOptions& options);

}  // namespace tessera::tools
