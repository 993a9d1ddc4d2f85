// Whether a topology file describes the host that it is used on: files are made on a bare machine
// and reused in guests, where the bus ids of GPUs and NICs may be others.
//
// Only GPUs and NICs count; ids of bridges are labels. Thread safety: pure functions.
#pragma once

#include <vector>

#include "topology/machine.h"

namespace tessera::topology {

struct HostMatch {
  // False: the file has GPUs, and none of them is here. It is of no use then; the one warning says
  // so.
  bool usable = true;
  std::vector<int> absent;        // pcis of the file that are not here
  std::vector<int> unknown;       // pcis of this host that are not in the file
  std::vector<Warning> warnings;  // one for each of them
};

// `host`: a host of the file.
HostMatch match_host(const Machine& file, int host, const Machine& here);

}  // namespace tessera::topology
