// The graph of a machine: everything that its description leaves open is decided here, and each
// assumption is a line of Graph::notes.
//
// Every GPU reaches every other GPU, NIC and CPU of its host, in the worst case by an assumed CPU.
// A device whose NUMA node is unknown is equally far from all nodes of its host, as if the link
// between sockets were always in between. A bridge with one useful thing below it is no node: the
// smallest speed of the chain is the link's. Devices that share a bus id have no direct path to
// each other and a part of the device's link each.
//
// Names: gpu0, cpu<NUMA id>, core0, l3.0, switch0, nvswitch0, nic0, fabric; ports as the
// description names them. Numbers count in the order of the description, per host.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "topology/graph.h"
#include "topology/machine.h"

namespace tessera::topology {

struct GraphOptions {
  bool cores = true;  // nodes for cores and shared caches, where the description has them
  // Shares of a GPU's bandwidth by number of peers at a time, for GPUs on a switch; empty: the
  // assumption of default_fan_out().
  std::vector<double> fan_out;
};

Graph graph_of(const Machine& machine, const GraphOptions& options = {});

// So many copies of what `host` holds, joined by a fabric through their ports. A host of which no
// port is known gets an assumed Ethernet port.
Graph replicate(const Graph& host, int copies);

// Nodes of the ranks 0..n-1 that the description states; empty if it states no such row.
std::vector<int> stated_ranks(const Graph& graph);

}  // namespace tessera::topology
