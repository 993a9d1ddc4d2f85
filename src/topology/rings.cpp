// Rings over all groups: the speed that gives most bandwidth in all.
//
// For each speed worth trying, every group packs as many chains as fit; the fewest of a group is
// the number of rings. Groups of one shape, as a rule all hosts, are searched once: the chains of
// the first are carried over to the others link by link.
//
// Cost: speeds x shapes x the cost of packing; linear in the number of hosts.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "topology/search_parts.h"

namespace tessera::topology {
namespace {

// The nodes and links that a group may use, in their order: what tells shapes apart, and what
// carries a solution from one host to another of the same shape.
struct Shape {
  std::vector<int> nodes, links;
  std::string text;
};

Shape shape_of(Paths& paths, const std::vector<int>& members, const std::vector<int>& nodes,
               const Group& group, std::vector<int>& local) {
  const Graph& graph = paths.graph();
  Shape shape;
  shape.nodes = members;
  for (size_t i = 0; i < members.size(); ++i) local[members[i]] = static_cast<int>(i);
  const auto put = [&](auto value) {
    shape.text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const int node : shape.nodes) {
    put(graph.nodes[node].kind);
    put(graph.nodes[node].numa);
    for (const int id : graph.out[node]) {
      const Link& link = graph.links[id];
      shape.links.push_back(id);
      if (link.to == paths.fabric()) shape.links.push_back(link.reverse);
      put(link.to == paths.fabric() ? -1 : local[link.to]);
      put(link.kind);
      put(link.bandwidth);
      put(link.latency);
    }
  }
  put(-2);
  for (const int rank : group.ranks) put(local[nodes[rank]]);
  put(-3);
  for (const Group::Rail& rail : group.rails) {
    put(rail.port < 0 ? -1 : local[rail.port]);
    put(rail.head);
  }
  return shape;
}

// The same chains on another host of the shape.
std::vector<Chain> moved(const std::vector<Chain>& chains, const Shape& from, const Shape& to,
                         const Group& from_group, const Group& to_group) {
  std::map<int, int> link_at, rank_at;
  for (size_t i = 0; i < from.links.size(); ++i) link_at[from.links[i]] = to.links[i];
  for (size_t i = 0; i < from_group.ranks.size(); ++i) {
    rank_at[from_group.ranks[i]] = to_group.ranks[i];
  }
  const auto move = [&](std::vector<int>& links) {
    for (int& link : links) link = link_at[link];
  };
  std::vector<Chain> result = chains;
  for (Chain& chain : result) {
    move(chain.in);
    move(chain.out);
    if (chain.relay >= 0) chain.relay = rank_at[chain.relay];
    for (Hop& hop : chain.hops) {
      move(hop.links);
      hop.from = rank_at[hop.from];
      hop.to = rank_at[hop.to];
    }
  }
  return result;
}

std::vector<Ring> rings_of(const std::vector<Group>& groups,
                           const std::vector<std::vector<Chain>>& chains) {
  std::vector<Ring> rings;
  const size_t n = groups.size();
  for (size_t channel = 0; channel < chains.front().size(); ++channel) {
    Ring ring;
    for (size_t g = 0; g < n; ++g) {
      const Chain& chain = chains[g][channel];
      for (const int place : chain.order) ring.order.push_back(groups[g].ranks[place]);
      ring.hops.insert(ring.hops.end(), chain.hops.begin(), chain.hops.end());
      if (n == 1) continue;
      const Chain& next = chains[(g + 1) % n][channel];
      Hop hop{ring.order.back(), groups[(g + 1) % n].ranks[next.order.front()], chain.out,
              chain.relay};
      hop.links.insert(hop.links.end(), next.in.begin(), next.in.end());
      ring.hops.push_back(std::move(hop));
    }
    rings.push_back(std::move(ring));
  }
  return rings;
}

class RingSearch {
 public:
  RingSearch(Paths& paths, const std::vector<int>& nodes, const std::vector<Group>& groups,
             const SearchOptions& options)
      : paths_(paths), nodes_(nodes), groups_(groups), options_(options) {
    std::vector<int> local(paths.graph().nodes.size(), -1);
    std::map<int, std::vector<int>> members;
    for (size_t i = 0; i < local.size(); ++i) {
      if (static_cast<int>(i) != paths.fabric()) {
        members[paths.island(static_cast<int>(i))].push_back(static_cast<int>(i));
      }
    }
    std::map<std::string, size_t> known;
    for (size_t g = 0; g < groups.size(); ++g) {
      const int island = paths.island(nodes[groups[g].ranks.front()]);
      shapes_.push_back(shape_of(paths, members[island], nodes, groups[g], local));
      model_.push_back(known.emplace(shapes_.back().text, g).first->second);
    }
    const int64_t steps = options.steps / static_cast<int64_t>(known.size());
    for (const auto& [text, g] : known) {
      searches_.try_emplace(g, paths, nodes, groups[g], groups.size() == 1, steps);
    }
  }

  Found run() {
    std::set<double, std::greater<>> speeds;
    for (auto& [g, search] : searches_) {
      for (const double speed : search.speeds()) speeds.insert(speed);
    }
    std::vector<double> tried(speeds.begin(), speeds.end());
    while (tried.size() > kMostSpeeds) {
      for (size_t i = 1; i < tried.size(); ++i) tried.erase(tried.begin() + static_cast<long>(i));
    }
    const bool exact = std::any_of(searches_.begin(), searches_.end(),
                                   [](const auto& each) { return each.second.exact(); });
    for (const double speed : tried) {
      consider([&](ChainSearch& search, int most) { return search.pack(speed, most, true); });
      if (exact) {
        consider([&](ChainSearch& search, int most) {
          return search.pack(speed, most, !search.exact());
        });
      }
      if (groups_.size() > 1) continue;
      std::vector<int> order(groups_.front().ranks.size());
      std::iota(order.begin(), order.end(), 0);
      consider(
          [&](ChainSearch& search, int most) { return search.pack_in_order(order, speed, most); });
    }
    return best();
  }

 private:
  static constexpr size_t kMostSpeeds = 64;
  // Slower speeds come later and mean more rings, each of which costs resources
  static constexpr double kWorthMoreRings = 1.02;

  template <class Pack>
  void consider(const Pack& pack) {
    std::map<size_t, std::vector<Chain>> by_model;
    int channels = std::max(1, options_.channels);
    for (auto& [g, search] : searches_) {
      by_model[g] = pack(search, channels);
      channels = std::min(channels, static_cast<int>(by_model[g].size()));
      if (channels == 0) return;
    }
    for (auto& [g, chains] : by_model) chains.resize(channels);
    const double total = total_of_models(by_model, channels);
    if (total <= best_total_ * kWorthMoreRings) return;
    best_total_ = total;
    best_ = std::move(by_model);
  }

  // A chain's hops, and, of several groups, its way in and out.
  std::vector<Hop> load_of(size_t g, const Chain& chain) const {
    std::vector<Hop> hops = chain.hops;
    if (groups_.size() == 1) return hops;
    const int head = groups_[g].ranks[chain.order.front()];
    hops.push_back({head, head, chain.in, -1});
    hops.push_back({groups_[g].ranks[chain.order.back()], head, chain.out, chain.relay});
    return hops;
  }

  // Hosts of one shape are loaded alike, so one of each is enough.
  double total_of_models(const std::map<size_t, std::vector<Chain>>& by_model, int channels) const {
    std::vector<std::vector<Hop>> load(channels);
    for (const auto& [g, chains] : by_model) {
      for (int c = 0; c < channels; ++c) {
        const std::vector<Hop> hops = load_of(g, chains[c]);
        load[c].insert(load[c].end(), hops.begin(), hops.end());
      }
    }
    return shared_bandwidth(paths_.graph(), nodes_, load) * channels;
  }

  // The same orders over the ways that load links least, as they are chosen for rings of a file.
  std::vector<Chain> routed_anew(size_t g, const std::vector<Chain>& chains) {
    const size_t ranks = groups_[g].ranks.size();
    if (ranks > kMostGreedyRanks) return chains;
    std::vector<std::vector<Hop>> channels;
    for (const Chain& chain : chains) {
      channels.push_back(load_of(g, chain));
      for (size_t i = 0; i < chain.hops.size(); ++i) channels.back()[i].links.clear();
    }
    route(paths_, nodes_, ranks, channels);
    std::vector<Chain> result = chains;
    for (size_t c = 0; c < chains.size(); ++c)
      std::copy_n(channels[c].begin(), chains[c].hops.size(), result[c].hops.begin());
    return result;
  }

  std::vector<std::vector<Chain>> on_all_hosts(
      const std::map<size_t, std::vector<Chain>>& by_model) const {
    std::vector<std::vector<Chain>> all;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const size_t model = model_[g];
      const std::vector<Chain>& chains = by_model.at(model);
      all.push_back(model == g
                        ? chains
                        : moved(chains, shapes_[model], shapes_[g], groups_[model], groups_[g]));
    }
    return all;
  }

  Found best() {
    Found found;
    if (best_.empty()) return found;
    found.chains = on_all_hosts(best_);
    std::map<size_t, std::vector<Chain>> anew;
    for (const auto& [g, chains] : best_) anew[g] = routed_anew(g, chains);
    const auto channels = static_cast<int>(best_.begin()->second.size());
    const bool better = total_of_models(anew, channels) > best_total_ * (1 + 1e-9);
    found.rings = rings_of(groups_, better ? on_all_hosts(anew) : found.chains);
    found.total = total_of(paths_.graph(), nodes_, found.rings);
    return found;
  }

  Paths& paths_;
  const std::vector<int>& nodes_;
  const std::vector<Group>& groups_;
  const SearchOptions& options_;
  std::vector<Shape> shapes_;
  std::vector<size_t> model_;  // per group: the first one of its shape
  std::map<size_t, ChainSearch> searches_;
  std::map<size_t, std::vector<Chain>> best_;  // by model
  double best_total_ = 0;
};

}  // namespace

Found find_chains(Paths& paths, const std::vector<int>& nodes, const std::vector<Group>& groups,
                  const SearchOptions& options) {
  return RingSearch(paths, nodes, groups, options).run();
}

double total_of(const Graph& graph, const std::vector<int>& nodes, const std::vector<Ring>& rings) {
  std::vector<std::vector<Hop>> hops;
  hops.reserve(rings.size());
  for (const Ring& ring : rings) hops.push_back(ring.hops);
  return shared_bandwidth(graph, nodes, hops) * static_cast<double>(rings.size());
}

}  // namespace tessera::topology
