// One machine from the descriptions that several ranks of a host give.
//
// Identity of a device is (host, bus id, instance), of a port (card, function, port, name);
// equality of attributes never matters. Instances tell devices with the same bus id apart: by the
// devices, GPUs and ports on and below them, and if there are none, by their order. Within a GPU's
// bus id the instance is the device index. NUMA nodes are identified by their id, all unknown nodes
// of a host are one.
//
// Where descriptions disagree, given beats unreadable beats absent; of two given values
//   affinity               both together
//   flags                  and
//   numbers, texts         the smaller one
//   position of a device   some bridge beats none, a known NUMA node beats an unknown one, then
//                          the smaller id
// and a warning says so. The result does not depend on the order of the descriptions: its parts are
// sorted. Two descriptions of one machine have equal merge({a}), merge({b}) and merge({a, b}).
//
// Thread safety: a pure function. Time is n log n in the number of parts.
#pragma once

#include <span>

#include "topology/machine.h"

namespace tessera::topology {

Machine merge(std::span<const Machine> of_one_host);

}  // namespace tessera::topology
