// Connects a rank with the ranks that it reaches through ports: of other hosts, or behind emulated
// links.
#pragma once

#include <vector>

#include "comm/bootstrap.h"
#include "comm/core.h"
#include "comm/hand_over.h"

namespace tessera {

// By rank: true for members on other hosts than `rank`.
std::vector<bool> elsewhere(const std::vector<Member>& members, int rank);

// Bytes per microsecond that every host carries each way: what the slowest one's fastest interface
// does, as far as the kernels know, and no more than TCP's default.
double network_bandwidth(const std::vector<Member>& members);

// Bytes of the segment behind the arenas that emulated links need.
size_t emulation_bytes(const Core& core);

// Of a core with `emulated` links and a mapped segment.
void open_emulated_ports(Core& core);

// Opens the ports of a core whose segment is mapped and that has members on other hosts, and enters
// them into its ways. All members call it; blocks until all are connected. Errors: kTimeout and
// kRemote name the rank, its host and the addresses that were tried.
Status open_ports(Core& core, Membership membership, HandOver& hand_over, Deadline deadline);

}  // namespace tessera
