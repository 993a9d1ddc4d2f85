// Keys of the parts of several descriptions of a host: parts with equal keys are one.
//
// Keys are texts that sort in the order of ids; they do not depend on the order of descriptions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/machine.h"

namespace tessera::topology {

// Per part of one machine, in the order of its arrays.
struct PartKeys {
  std::vector<std::string> hosts, cpus, pcis, gpus, nics, nets, links;
};

// Per machine.
std::vector<PartKeys> identify(std::span<const Machine> machines);

}  // namespace tessera::topology
