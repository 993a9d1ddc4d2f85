// Where ranks sit and which way bytes take between them: all that a simulation knows of a machine
// besides its graph. Backed by the topology's paths, or by a table.
//
// Thread safety: const calls may be made at the same time.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topology/graph.h"

namespace tessera::simulator {

struct Route {
  std::vector<int> links;  // of the graph, in order; empty between ranks on one node
  double latency_us = 0;
};

class Routes {
 public:
  virtual ~Routes() = default;
  virtual const topology::Graph& graph() const = 0;
  virtual int ranks() const = 0;
  virtual int node(int rank) const = 0;
  // An error says that there is no way, and why. A simulation remembers answers, as long as they are
  // no millions.
  virtual Result<Route> route(int from, int to) const = 0;
};

// Routes by a table of node pairs. Where the table says nothing, the way with the fewest links, of
// these the first found in the order of the graph's links, and the sum of its links' latencies.
class TableRoutes : public Routes {
 public:
  // The graph must outlive the routes.
  TableRoutes(const topology::Graph& graph, std::vector<int> node_of_rank)
      : graph_(&graph), node_of_rank_(std::move(node_of_rank)) {}

  void set(int from_node, int to_node, Route route);

  const topology::Graph& graph() const override { return *graph_; }
  int ranks() const override { return static_cast<int>(node_of_rank_.size()); }
  int node(int rank) const override { return node_of_rank_[static_cast<size_t>(rank)]; }
  Result<Route> route(int from, int to) const override;

 private:
  const topology::Graph* graph_;
  std::vector<int> node_of_rank_;
  std::map<std::pair<int, int>, Route> table_;
};

}  // namespace tessera::simulator
