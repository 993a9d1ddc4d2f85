// What a description's reader found odd in it, for people.
#pragma once

#include "topology/machine.h"

namespace tessera::tools {

// To standard error. Of what is said of several devices alike, the first, with how many there are:
//   topo.xml:12: pci 0000:4f:00.0: link_speed "fast" cannot be read (and 15 more alike, to line 90)
void print_warnings(const topology::Machine& machine);

}  // namespace tessera::tools
