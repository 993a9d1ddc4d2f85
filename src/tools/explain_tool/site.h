// The site that an explanation is for: this machine, several hosts like it, a machine that a file
// describes, or emulated links; as communicators there would see it.
//
// Thread safety: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "tuner/candidate.h"

namespace tessera::tools {

inline constexpr int kMostExplainedRanks = 1024;

// As asked for; 0 and empty: not said.
struct Where {
  std::string from;   // a description of each host; empty: NCCL_TOPO_FILE's, else this machine
  std::string hosts;  // a layout (tools/common/layout.h)
  int ranks = 0;      // else as many as the layout places, as the description has places, as cores
  int cores = 0;      // of a host; else those described or usable
};

// Errors: kInvalidArgument, options that do not go together, or of the description; kInvalidUsage,
// of the configuration.
Result<Site> site_of(Where where, const Config& config);

// What estimates rest on at the site besides profile and rules: the order of ranks, links. One line
// each; none on a common host. `described`: not this machine.
std::vector<std::string> about_links(const Site& site, const Config& config, bool described);

}  // namespace tessera::tools
