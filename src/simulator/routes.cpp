#include "simulator/routes.h"

#include <algorithm>
#include <unordered_map>

namespace tessera::simulator {

void TableRoutes::set(int from_node, int to_node, Route route) {
  table_[{from_node, to_node}] = std::move(route);
}

// A search in breadth that stops at the target, so that neighbours in a large graph cost little.
Result<Route> TableRoutes::route(int from, int to) const {
  const int source = node(from), target = node(to);
  if (const auto set = table_.find({source, target}); set != table_.end()) return set->second;
  std::unordered_map<int, int> entered;  // node -> the link it was first reached by
  std::vector<int> frontier{source};
  entered[source] = -1;
  for (size_t i = 0; i < frontier.size() && !entered.contains(target); ++i) {
    for (const int link : graph_->out[static_cast<size_t>(frontier[i])]) {
      const topology::Link& way = graph_->links[static_cast<size_t>(link)];
      if (way.bandwidth > 0 && entered.emplace(way.to, link).second) frontier.push_back(way.to);
    }
  }
  if (!entered.contains(target)) {
    return Status::error(Code::kInvalidArgument,
                         "rank {} ({}) and rank {} ({}) are not connected: no links lead from the "
                         "one to the other",
                         from, graph_->nodes[static_cast<size_t>(source)].name, to,
                         graph_->nodes[static_cast<size_t>(target)].name);
  }
  Route route;
  for (int at = target; at != source;) {
    const int link = entered[at];
    route.links.push_back(link);
    route.latency_us += graph_->links[static_cast<size_t>(link)].latency;
    at = graph_->links[static_cast<size_t>(link)].from;
  }
  std::reverse(route.links.begin(), route.links.end());
  return route;
}

}  // namespace tessera::simulator
