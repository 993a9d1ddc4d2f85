// Chains and rings within a group of ranks.
//
// At a given speed every chain takes so much of the bandwidth of each link it runs over; as many
// chains as fit are packed one after the other. A chain is tried in the orders that are known to be
// good, those of earlier chains and their reverse first, and then, for small groups, found by
// depth-first search with a limit on steps. Which chains are found first decides how many fit; where
// GPUs have links left for more, the search starts again with candidates in another order.
//
//   0 -> 1 -> 2 -> ?      each hop takes the first of its ways that has the speed left;
//             `-> 3 -> 0  a dead end gives the last hop back
//
// Cost: steps of the search are limited; an order of r ranks is tried in O(r) once its ways are
// known.
#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "topology/search_parts.h"

namespace tessera::topology {
namespace {

constexpr int64_t kStepsPerChain = 4000;
constexpr int kVariants = 16;  // orders of candidates
constexpr int kMostWays = 8;
constexpr size_t kMostSpeeds = 40;
constexpr double kSlack = 1e-9;
constexpr double kLargest = 1e300;

}  // namespace

ChainSearch::ChainSearch(Paths& paths, const std::vector<int>& nodes, const Group& group,
                         bool closed, int64_t steps)
    : paths_(paths),
      graph_(paths.graph()),
      nodes_(nodes),
      group_(group),
      closed_(closed),
      steps_(steps),
      variant_steps_(steps / 4) {
  orders_ = known_orders();
}

std::vector<std::vector<int>> ways_between(Paths& paths, int from, int to, size_t ranks) {
  // Only switch planes are worth a second way
  const bool planes =
      from != to && paths.reach(from, to).type <= LinkKind::kXgmi && ranks <= kMostGreedyRanks;
  std::vector<std::vector<int>> ways;
  for (Path& path : paths.disjoint(from, to, planes ? kMostWays : 1)) {
    ways.push_back(std::move(path.links));
  }
  return ways;
}

namespace {

int link_between(const Graph& graph, int from, int to) {
  for (const int link : graph.out[from]) {
    if (graph.links[link].to == to) return link;
  }
  return -1;
}

}  // namespace

std::vector<int> way_in(Paths& paths, int port, int head) {
  std::vector<int> links{link_between(paths.graph(), paths.fabric(), port)};
  const Path inner = paths.between(port, head);
  links.insert(links.end(), inner.links.begin(), inner.links.end());
  return links;
}

WayOut way_out(Paths& paths, int tail, int head, int port) {
  Path path = paths.between(tail, port);
  WayOut way;
  if (head != tail) {
    const Path first = paths.between(tail, head), second = paths.between(head, port);
    const bool wider = std::min(first.bandwidth, second.bandwidth) > path.bandwidth;
    if (first.type <= LinkKind::kXgmi && first.found &&
        (second.type < path.type || (second.type == path.type && wider))) {
      path = first;
      way.to_head = first.links.size();
      path.links.insert(path.links.end(), second.links.begin(), second.links.end());
      way.by_head = true;
    }
  }
  way.links = std::move(path.links);
  way.links.push_back(link_between(paths.graph(), port, paths.fabric()));
  return way;
}

const ChainSearch::Ways& ChainSearch::ways(int from, int to) {
  const auto [at, fresh] = ways_.try_emplace({from, to});
  if (fresh) {
    at->second = ways_between(paths_, nodes_[group_.ranks[from]], nodes_[group_.ranks[to]],
                              group_.ranks.size());
  }
  return at->second;
}

bool ChainSearch::take(const Ways& ways, std::vector<int>& taken) {
  for (const std::vector<int>& way : ways) {
    const bool fits = std::all_of(way.begin(), way.end(),
                                  [&](int link) { return left_[link] >= speed_ * (1 - kSlack); });
    if (!fits) continue;
    for (const int link : way) left_[link] -= speed_;
    taken = way;
    return true;
  }
  return false;
}

void ChainSearch::give_back(const std::vector<int>& links) {
  for (const int link : links) left_[link] += speed_;
}

// From the fabric to the head, by the rail's port.
bool ChainSearch::enter(const Group::Rail& rail, Chain& chain) {
  const int head = nodes_[group_.ranks[chain.order.front()]];
  if (rail.port < 0) return take({paths_.between(paths_.fabric(), head).links}, chain.in);
  return take({way_in(paths_, rail.port, head)}, chain.in);
}

// From the last rank to the fabric, perhaps through the head's GPU: by any of the ways to that.
bool ChainSearch::leave(const Group::Rail& rail, Chain& chain) {
  const int head = nodes_[group_.ranks[chain.order.front()]];
  const int tail = nodes_[group_.ranks[chain.order.back()]];
  if (rail.port < 0) return take({paths_.between(tail, paths_.fabric()).links}, chain.out);
  const WayOut way = way_out(paths_, tail, head, rail.port);
  if (!way.by_head) return take({way.links}, chain.out);
  chain.relay = group_.ranks[chain.order.front()];
  Ways all;
  for (std::vector<int> links : ways(chain.order.back(), chain.order.front())) {
    links.insert(links.end(), way.links.begin() + static_cast<long>(way.to_head), way.links.end());
    all.push_back(std::move(links));
  }
  return take(all, chain.out);
}

void ChainSearch::undo(const Chain& chain) {
  give_back(chain.in);
  give_back(chain.out);
  for (const Hop& hop : chain.hops) give_back(hop.links);
}

bool ChainSearch::start(int channel, Chain& chain, int first) {
  chain.order.push_back(first);
  return closed_ || enter(group_.rails[channel % group_.rails.size()], chain);
}

bool ChainSearch::finish(int channel, Chain& chain) {
  if (!closed_) return leave(group_.rails[channel % group_.rails.size()], chain);
  const int from = chain.order.back(), to = chain.order.front();
  if (from == to) return true;
  Hop hop{group_.ranks[from], group_.ranks[to], {}, -1};
  if (!take(ways(from, to), hop.links)) return false;
  chain.hops.push_back(std::move(hop));
  return true;
}

bool ChainSearch::follow(const std::vector<int>& order, int channel, Chain& chain) {
  chain = {};
  const int first = closed_ ? order.front() : group_.rails[channel % group_.rails.size()].head;
  const auto begin = std::find(order.begin(), order.end(), first) - order.begin();
  bool fits = start(channel, chain, first);
  for (size_t i = 1; fits && i < order.size(); ++i) {
    const int next = order[(static_cast<size_t>(begin) + i) % order.size()];
    Hop hop{group_.ranks[chain.order.back()], group_.ranks[next], {}, -1};
    fits = take(ways(chain.order.back(), next), hop.links);
    if (!fits) break;
    chain.order.push_back(next);
    chain.hops.push_back(std::move(hop));
  }
  if (fits && finish(channel, chain)) return true;
  undo(chain);
  return false;
}

// Depth first; candidates by distance, then by number or, in other variants, in some other order.
bool ChainSearch::grow(int channel, Chain& chain, std::vector<char>& used) {
  if (chain.order.size() == group_.ranks.size()) return finish(channel, chain);
  if (steps_ <= 0 || steps_here_ <= 0) return false;
  --steps_;
  --steps_here_;
  const int here = chain.order.back();
  std::vector<std::pair<double, int>> candidates;
  for (int next = 0; next < static_cast<int>(used.size()); ++next) {
    if (used[next] == 0) candidates.emplace_back(hop_cost(here, next), next ^ variant_);
  }
  std::sort(candidates.begin(), candidates.end());
  for (const auto& [cost, place] : candidates) {
    const int next = place ^ variant_;
    Hop hop{group_.ranks[here], group_.ranks[next], {}, -1};
    if (!take(ways(here, next), hop.links)) continue;
    chain.order.push_back(next);
    chain.hops.push_back(hop);
    used[next] = 1;
    if (grow(channel, chain, used)) return true;
    used[next] = 0;
    chain.order.pop_back();
    chain.hops.pop_back();
    chain.relay = -1;
    give_back(hop.links);
  }
  return false;
}

bool ChainSearch::exact() const { return static_cast<int>(group_.ranks.size()) <= kMostExactRanks; }

void ChainSearch::refill(double speed) {
  speed_ = speed;
  left_.resize(graph_.links.size());
  for (size_t i = 0; i < left_.size(); ++i) left_[i] = graph_.links[i].bandwidth;
}

// One more chain by depth-first search.
bool ChainSearch::find(int channel, Chain& chain) {
  chain = {};
  steps_here_ = kStepsPerChain;
  std::vector<char> used(group_.ranks.size(), 0);
  const int first = closed_ ? 0 : group_.rails[channel % group_.rails.size()].head;
  used[first] = 1;
  if (start(channel, chain, first) && grow(channel, chain, used)) return true;
  undo(chain);
  return false;
}

// How many chains the links between GPUs allow at most: each leaves every rank once.
int ChainSearch::most_by_links(double speed) const {
  int least = std::numeric_limits<int>::max();
  for (const int rank : group_.ranks) {
    int chains = 0;
    for (const int link : graph_.out[nodes_[rank]]) {
      const Link& out = graph_.links[link];
      if (out.kind == LinkKind::kNvlink || out.kind == LinkKind::kXgmi)
        chains += static_cast<int>(out.bandwidth / speed * (1 + kSlack));
    }
    least = std::min(least, chains);
  }
  return least;
}

std::vector<Chain> ChainSearch::pack(double speed, int most, bool with_known) {
  std::vector<Chain> best = pack_once(speed, most, with_known);
  if (with_known || !exact()) return best;
  const auto enough = static_cast<size_t>(std::min(most, most_by_links(speed)));
  const int64_t before = steps_;
  for (variant_ = 1; variant_ < kVariants && best.size() < enough; ++variant_) {
    if (before - steps_ >= variant_steps_) break;
    std::vector<Chain> other = pack_once(speed, most, with_known);
    if (other.size() > best.size()) best = std::move(other);
  }
  variant_ = 0;
  variant_steps_ -= before - steps_;
  return best;
}

std::vector<Chain> ChainSearch::pack_once(double speed, int most, bool with_known) {
  refill(speed);
  std::vector<std::vector<int>> orders;
  if (with_known) orders = orders_;
  std::vector<Chain> chains;
  while (static_cast<int>(chains.size()) < most) {
    const int channel = static_cast<int>(chains.size());
    Chain chain;
    bool fits = false;
    for (auto order = orders.begin(); order != orders.end() && !fits; ++order) {
      fits = follow(*order, channel, chain);
      // What has served once is tried first
      if (fits) std::rotate(orders.begin(), order, order + 1);
    }
    if (!fits && exact() && find(channel, chain)) {
      fits = true;
      std::vector<int> back(chain.order.rbegin(), chain.order.rend());
      orders.insert(orders.begin(), {chain.order, std::move(back)});
    }
    if (!fits) break;
    chains.push_back(std::move(chain));
  }
  return chains;
}

std::vector<Chain> ChainSearch::pack_in_order(const std::vector<int>& order, double speed,
                                              int most) {
  refill(speed);
  std::vector<Chain> chains;
  Chain chain;
  while (static_cast<int>(chains.size()) < most &&
         follow(order, static_cast<int>(chains.size()), chain)) {
    chains.push_back(chain);
  }
  return chains;
}

// Distance as one number: kind, then width, then links.
double ChainSearch::hop_cost(int from, int to) {
  const Reach reach = paths_.reach(nodes_[group_.ranks[from]], nodes_[group_.ranks[to]]);
  if (!reach.found) return 1e18;
  return 1e6 * static_cast<double>(reach.type) + 1e3 / std::max(reach.bandwidth, 1e-3) +
         1e-3 * reach.hops;
}

// Widths of ways between ranks and to the rails, and parts of them.
std::vector<double> ChainSearch::speeds() {
  std::set<double, std::greater<>> widths;
  const auto width = [&](const std::vector<int>& links) {
    double least = kLargest;
    for (const int link : links) least = std::min(least, graph_.links[link].bandwidth);
    if (!links.empty()) widths.insert(least);
  };
  const int n = static_cast<int>(group_.ranks.size());
  const auto add = [&](int from, int to) {
    if (from == to) return;
    for (const std::vector<int>& way : ways(from, to)) width(way);
  };
  if (n <= kMostExactRanks) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) add(i, j);
    }
  } else {
    for (const std::vector<int>& order : orders_) {
      for (int i = 0; i < n; ++i) add(order[i], order[(i + 1) % n]);
    }
  }
  for (const Group::Rail& rail : group_.rails) {
    const int head = nodes_[group_.ranks[rail.head]];
    const int from = rail.port < 0 ? paths_.fabric() : rail.port;
    widths.insert(paths_.reach(from, head).bandwidth);
    if (rail.port >= 0) widths.insert(paths_.reach(paths_.fabric(), rail.port).bandwidth);
  }
  std::set<double, std::greater<>> speeds;
  for (const double each : widths) {
    if (!(each > 0) || each >= kLargest) continue;
    for (const double part : {1, 2, 3, 4, 5, 6, 8, 12, 16, 18}) speeds.insert(each / part);
  }
  std::vector<double> chosen(speeds.begin(), speeds.end());
  // Too many: every second, so that both ends stay
  while (chosen.size() > kMostSpeeds) {
    for (size_t i = 1; i < chosen.size(); ++i) chosen.erase(chosen.begin() + static_cast<long>(i));
  }
  return chosen;
}

}  // namespace tessera::topology
