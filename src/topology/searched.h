// Between what a search found and NCCL's graph files.
//
// A file describes one host: channels are orders of its GPUs (device numbers; ranks on cores count
// as devices too), with the ports by which each is entered and left where there are several hosts.
// Written are the rings (id 0) and the chains of the trees inside a host (id 1) of host 0. Read are
// the rings; each order holds for every host, hosts follow each other.
//
// Whom a gpu of a file stands for: the rank that it states, which must be one of host 0 and sit on
// that device (several may share a core); where it states none, the rank on the device. Anything
// else is an error with the line, as is a ring that does not hold every rank once.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "topology/graph_xml.h"
#include "topology/search.h"

namespace tessera::topology {

// Where a rank is.
struct Seat {
  int host = 0;
  int device = 0;  // -1: not known; devices are then numbered like the ranks, or shared
};
// Devices of ranks on NUMA nodes are not known where there is one host.
std::vector<Seat> seats_of(const Graph& graph, std::span<const int> rank_nodes);

// The ranks of a channel in its order, host after host. Errors: kInvalidUsage, "source:line: ...".
Result<std::vector<int>> ranks_of(const GraphChannel& channel, std::span<const Seat> seats,
                                  const std::string& source);

SearchedGraphs searched_graphs(const Graph& graph, const Layout& layout);

// Rings as the file has them, by its ports and over the ways that load the links least; trees, cards and ports as a
// search of `graph` finds them. Errors: those of ranks_of().
Result<Layout> layout_of(const Graph& graph, std::span<const int> rank_nodes,
                         const SearchedGraphs& graphs, const std::string& source);

}  // namespace tessera::topology
