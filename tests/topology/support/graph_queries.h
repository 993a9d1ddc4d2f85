// What tests ask of the graph of one host, by the names of its nodes.
#pragma once

#include <string>

#include "topology/paths.h"

namespace tessera::topology::samples {

inline std::string class_of(const Graph& graph, const std::string& from, const std::string& to) {
  Paths paths(graph);
  return class_name(graph, paths.between(graph.find(0, from), graph.find(0, to)));
}

inline double bandwidth_of(const Graph& graph, const std::string& from, const std::string& to) {
  return Paths(graph).reach(graph.find(0, from), graph.find(0, to)).bandwidth;
}

// Physical links between two nodes.
inline int links_between(const Graph& graph, const std::string& from, const std::string& to) {
  int count = 0;
  for (const int link : graph.out[graph.find(0, from)]) {
    if (graph.links[link].to == graph.find(0, to)) count += graph.links[link].count;
  }
  return count;
}

}  // namespace tessera::topology::samples
