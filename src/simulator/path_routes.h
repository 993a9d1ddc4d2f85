// Routes as the topology finds them: the best path between the nodes that ranks sit on.
//
// Thread safety: one thread at a time, for the paths keep what they have found.
#pragma once

#include <utility>
#include <vector>

#include "simulator/routes.h"
#include "topology/paths.h"

namespace tessera::simulator {

class PathRoutes : public Routes {
 public:
  // The paths must outlive the routes.
  PathRoutes(topology::Paths& paths, std::vector<int> node_of_rank)
      : paths_(&paths), node_of_rank_(std::move(node_of_rank)) {}

  const topology::Graph& graph() const override { return paths_->graph(); }
  int ranks() const override { return static_cast<int>(node_of_rank_.size()); }
  int node(int rank) const override { return node_of_rank_[static_cast<size_t>(rank)]; }

  Result<Route> route(int from, int to) const override {
    topology::Path path = paths_->between(node(from), node(to));
    if (!path.found) {
      return Status::error(Code::kInvalidArgument,
                           "rank {} ({}) and rank {} ({}) are not connected: no path leads from "
                           "the one to the other",
                           from, name(from), to, name(to));
    }
    return Route{std::move(path.links), path.latency};
  }

 private:
  const std::string& name(int rank) const {
    return graph().nodes[static_cast<size_t>(node(rank))].name;
  }

  topology::Paths* paths_;
  std::vector<int> node_of_rank_;
};

}  // namespace tessera::simulator
