// Pictures of a graph and of a layout on it. Thread safety: pure functions.
#pragma once

#include <string>

#include "topology/graph.h"
#include "topology/search.h"

namespace tessera::topology {

// For Graphviz (dot or neato): hosts and NUMA nodes as boxes, links coloured by kind and labelled
// with GB/s, the hops of each ring as coloured arrows. layout may be null.
std::string to_dot(const Graph& graph, const Layout* layout = nullptr);

struct TextOptions {
  bool machine = true;  // the tree of each host
  bool paths = true;    // between ranks, and from ranks to cards
  bool layout = true;   // rings and trees
  int most_ranks = 32;  // in matrices; of the others the number is told
  int most_hosts = 4;
};

// What was unknown and what stands for it: a line "assumed: ..." for each of the graph's notes.
std::string assumptions(const Graph& graph);

// layout may be null: then the machine only.
std::string to_text(const Graph& graph, const Layout* layout = nullptr,
                    const TextOptions& options = {});

}  // namespace tessera::topology
