// Between what a search found and NCCL's graph files.
//
// A file describes one host: channels are orders of its GPUs (device numbers; ranks on cores count
// as devices too), with the ports by which each is entered and left where there are several hosts.
// Written are the rings (id 0) and the chains of the trees inside a host (id 1) of host 0. Read are
// the rings; each order holds for every host, hosts follow each other. Where several ranks share a
// core of the only host, the ranks that the file states tell them apart.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "topology/graph_xml.h"
#include "topology/search.h"

namespace tessera::topology {

SearchedGraphs searched_graphs(const Graph& graph, const Layout& layout);

// Rings as the file has them; trees, cards and ports as a search of `graph` finds them. Errors:
// kInvalidUsage naming `source`, when a channel does not hold every rank of every host once.
Result<Layout> layout_of(const Graph& graph, std::span<const int> rank_nodes,
                         const SearchedGraphs& graphs, const std::string& source);

}  // namespace tessera::topology
