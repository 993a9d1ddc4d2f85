// Graphs made by hand, for tests.
#pragma once

#include <vector>

#include "topology/graph.h"

namespace tessera::topology::samples {

// 8 GPUs on 4 switch planes (5 + 5 + 4 + 4 links of 20.6 GB/s), each with a PCIe switch that it
// shares with a NIC of 50 GB/s; 2 sockets.
Graph dgx();
// GPUs that are all linked with each other by xGMI, on two sockets; a NIC for each.
Graph xgmi_mesh(int gpus, double bandwidth = 48);
// 4 GPUs in a ring of xGMI links, one CPU, one NIC.
Graph xgmi_ring();
// GPUs under two sockets, no links but PCIe; the switches of a socket carry two GPUs each. The
// numbers alternate between the sockets if `alternating`.
Graph two_sockets(int gpus, bool alternating = false);
// Sockets of cores, four to an L3.
Graph cores(int sockets, int cores_per_socket);
// One GPU and one port.
Graph single_gpu();

// Connected, with GPUs, CPUs, switches and some NVLink; the same for the same seed.
Graph random_host(unsigned seed);

std::vector<int> gpus(const Graph& graph);
std::vector<int> core_nodes(const Graph& graph);

}  // namespace tessera::topology::samples
