// What NCCL's topology files can say of a machine, in the form in which NCCL reads them.
//
// Made of any machine, by the rules of NCCL's own reader:
//   version of the format      1 where none is given
//   cpu without NUMA id        numaid -1
//   pci without bus id         one that nothing else has, of domain ffff; bridges with nothing but
//                              pcis below are left out, and what is below them moves up: hwloc's
//                              host bridges, which NCCL's own files do not have either
//   gpu without pci            gets one, below a cpu of unknown NUMA node
// What the format has no place for is left out: cores, caches, sizes of memory, names of hosts and
// devices. Parts are in the order in which a file lists them.
//
// Thread safety: pure. Source: NCCL's reader, which ends in an error without `version` of the system,
// `numaid` of a cpu and `busid` of a pci.
#pragma once

#include "topology/machine.h"

namespace tessera::topology {

Machine in_nccl_form(Machine machine);

}  // namespace tessera::topology
