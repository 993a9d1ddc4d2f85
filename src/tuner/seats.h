// Where ranks sit on their machines, and what plans and the model make of it.
//
//   a rank tells      Seat: its place in the ring of its host, its NUMA node, the links there
//   all make of them  Site::order, node_of, between_nodes and network, alike on every rank
//
//      NUMA node 0: ranks 0 2        NUMA node 1: ranks 1 3        order 0 2 1 3: a ring crosses
//                                                                  between the nodes twice, not
//                                                                  four times
//
// A seat that is not known changes nothing: ranks then follow each other by number.
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "topology/cpu_set.h"
#include "topology/graph.h"
#include "topology/machine.h"
#include "tuner/candidate.h"

namespace tessera {

// Plain data, sent as it is. 0 for what is not known of links, or does not exist.
struct Seat {
  int32_t place = -1;               // -1: not known
  int32_t node = -1;                // its number on the host; -1: not known
  NodeLink between_nodes = {0, 0};  // of the host, the slowest
  NodeLink between_hosts = {0, 0};  // of several, its ports together
  bool operator==(const Seat&) const = default;
};

// Of the ranks of one host, on these nodes of host 0 of a graph (none: no seats): places are those of the first ring
// that a search finds. Errors: the search's.
Result<std::vector<Seat>> seats_on(const topology::Graph& graph, const std::vector<int>& nodes);

// From a node of host 0 to a host like it, over its ports all together; bandwidth 0: there are none.
NodeLink to_another_host(const topology::Graph& graph, int node);

// Of the calling thread on a machine, by the processors that it may use: places are in the order of
// NUMA nodes. Not known where these belong to several nodes.
Seat seat_among(const topology::Machine& machine, const topology::CpuSet& usable);

// The same on this machine, which is looked at once per process, and only if it has several NUMA
// nodes.
Seat seat_here();

// What all make of it: site.order, node_of and between_nodes. `one_ring`: places count over all
// hosts (a graph file's), else within each.
void seat_ranks(Site& site, const std::vector<Seat>& seats, bool one_ring);

}  // namespace tessera
