#include "algorithms/host_trees.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tessera {
namespace {

constexpr int kClimbing = 0, kDescending = 1;

// By host, the rank that stands for it.
using Delegates = std::vector<int>;

Delegates on_rail(const Hosts& hosts, int rail) {
  Delegates delegates;
  for (int host = 0; host < hosts.count(); ++host) delegates.push_back(hosts.on_rail(host, rail));
  return delegates;
}

// For the block of `rank`: itself on its host; elsewhere the rank of the same place, or the next in
// turn, so that a host's ranks share what comes in.
Delegates of_block(const Hosts& hosts, int rank) {
  Delegates delegates;
  const int home = hosts.of[rank];
  const std::vector<int>& mates = hosts.ranks[home];
  const int place = static_cast<int>(std::find(mates.begin(), mates.end(), rank) - mates.begin());
  for (int host = 0; host < hosts.count(); ++host) {
    int before = 0;  // blocks of the hosts between this one and home
    for (int h = (host + 1) % hosts.count(); h != home && host != home; h = (h + 1) % hosts.count())
      before += hosts.size(h);
    delegates.push_back(host == home ? rank : hosts.on_rail(host, before + place));
  }
  return delegates;
}

// The ranks of the root's host hang on the root, whoever stands for the host.
Tree across(const Hosts& hosts, const Delegates& delegates, HostTree shape, int root) {
  const int home = hosts.of[root];
  const std::vector<int> above = shape(hosts.count(), home);
  std::vector<int> parent(hosts.of.size());
  for (int rank = 0; rank < static_cast<int>(parent.size()); ++rank) {
    const int host = hosts.of[rank];
    if (rank == root) {
      parent[rank] = -1;
    } else if (host == home) {
      parent[rank] = root;
    } else {
      parent[rank] = rank == delegates[host] ? delegates[above[host]] : delegates[host];
    }
  }
  return make_tree(std::move(parent));
}

int height(const Tree& tree, int rank) {
  int highest = 0;
  for (const int child : tree.children[rank]) highest = std::max(highest, 1 + height(tree, child));
  return highest;
}

int depth(const Tree& tree, int rank) {
  return rank == tree.root ? 0 : 1 + depth(tree, tree.parent[rank]);
}

// One chunk's (or block's) trees; either way may be missing.
struct Trip {
  Cargo cargo;
  Way up, down;
};

// The trips in the order in which `rank` does its part of them: by level, each rank starting with
// other roots or, where all have one, other chunks, so that not all turn to the same host or peer.
std::vector<int> in_order(const std::vector<Trip>& trips, int rank, bool climbing) {
  const int count = static_cast<int>(trips.size());
  std::vector<std::tuple<int, int, int, int>> order;
  for (int i = 0; i < count; ++i) {
    const Tree& tree = climbing ? trips[i].up.tree : trips[i].down.tree;
    const auto ranks = static_cast<int>(tree.parent.size());
    const int first = static_cast<int>(int64_t{rank} * count / ranks);
    order.emplace_back(climbing ? height(tree, rank) : depth(tree, rank),
                       wrap(tree.root - rank, ranks), wrap(i - first, count), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> result;
  for (const auto& [level, root, turn, trip] : order) result.push_back(trip);
  return result;
}

void climb_all(PlanBuilder& plan, const Exchange& exchange, const std::vector<Trip>& trips,
               int rank, bool then_down) {
  for (const int i : in_order(trips, rank, true)) {
    const Trip& trip = trips[i];
    climb(plan, exchange, trip.up, rank, trip.cargo, kClimbing, then_down ? &trip.down : nullptr);
  }
}

void descend_all(PlanBuilder& plan, const Exchange& exchange, const std::vector<Trip>& trips,
                 int rank, int lane) {
  for (const int i : in_order(trips, rank, false)) {
    if (rank != trips[i].down.tree.root)
      descend(plan, exchange, trips[i].down, rank, trips[i].cargo, lane);
  }
}

}  // namespace

std::vector<int> star_of_hosts(int hosts, int root) {
  std::vector<int> parent(hosts, root);
  parent[root] = -1;
  return parent;
}

std::vector<int> binary_of_hosts(int hosts, int root) {
  std::vector<int> parent(hosts, -1);
  for (int v = 1; v < hosts; ++v) parent[(root + v) % hosts] = (root + (v - 1) / 2) % hosts;
  return parent;
}

std::vector<int> chain_to_root(int hosts, int root) {
  std::vector<int> parent(hosts, -1);
  for (int v = 1; v < hosts; ++v) parent[(root + v) % hosts] = (root + v + 1) % hosts;
  return parent;
}

std::vector<int> chain_from_root(int hosts, int root) {
  std::vector<int> parent(hosts, -1);
  for (int v = 1; v < hosts; ++v) parent[(root + v) % hosts] = (root + v - 1) % hosts;
  return parent;
}

// No credits: a rank begins a pass when it has all results of the pass that used the same copy of
// scratch. Those were made of the sums that it sent; and whoever adds to the new sums has by then
// all results of that pass too, so that every slot has been read.
Plan all_reduce_over(const char* name, const HostShape& shape, const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(name, Collective::kAllReduce, params);
  const Hosts hosts = hosts_of(params);
  const int chunks = hosts.count() * hosts.largest();
  PlanBuilder plan(name, Collective::kAllReduce, n, -1, chunks, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kNever);
  std::vector<Trip> trips;
  for (int c = 0; c < chunks; ++c) {
    const Delegates delegates = on_rail(hosts, c / hosts.count());
    const int root = delegates[c % hosts.count()];
    trips.push_back({Cargo::same(c), way_up(exchange, across(hosts, delegates, shape.up, root)),
                     way_down(exchange, across(hosts, delegates, shape.down, root))});
  }
  for (int rank = 0; rank < n; ++rank) {
    const int done = plan.counter(rank);
    plan.lane(rank, kClimbing).sync().wait(done, 1, static_cast<uint32_t>(params.scratch_depth));
    climb_all(plan, exchange, trips, rank, true);
    descend_all(plan, exchange, trips, rank, kDescending);
    plan.lane(rank, kDescending).sync().signal(rank, done);
  }
  return std::move(plan).build();
}

Plan all_gather_over(const char* name, const HostShape& shape, const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(name, Collective::kAllGather, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(name, Collective::kAllGather, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  std::vector<Trip> trips;
  for (int rank = 0; rank < n; ++rank) {
    Tree tree = across(hosts, of_block(hosts, rank), shape.down, rank);
    trips.push_back({{0, rank, 0}, {}, way_down(exchange, std::move(tree))});
  }
  for (int rank = 0; rank < n; ++rank) {
    start_down(plan, exchange, trips[rank].down, trips[rank].cargo);
    descend_all(plan, exchange, trips, rank, kDescending);
  }
  return std::move(plan).build();
}

Plan reduce_scatter_over(const char* name, const HostShape& shape, const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(name, Collective::kReduceScatter, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(name, Collective::kReduceScatter, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  std::vector<Trip> trips;
  for (int rank = 0; rank < n; ++rank) {
    Tree tree = across(hosts, of_block(hosts, rank), shape.up, rank);
    trips.push_back({{rank, 0, 0}, way_up(exchange, std::move(tree)), {}});
  }
  for (int rank = 0; rank < n; ++rank) climb_all(plan, exchange, trips, rank, false);
  return std::move(plan).build();
}

Plan broadcast_over(const char* name, HostTree tree, int rails, const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(name, Collective::kBroadcast, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(name, Collective::kBroadcast, params.ranks, params.root, rails,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  std::vector<Trip> trips;
  for (int c = 0; c < rails; ++c) {
    Tree way = across(hosts, on_rail(hosts, c), tree, params.root);
    trips.push_back({Cargo::same(c), {}, way_down(exchange, std::move(way))});
    start_down(plan, exchange, trips.back().down, trips.back().cargo);
  }
  for (int rank = 0; rank < params.ranks; ++rank) descend_all(plan, exchange, trips, rank, 0);
  return std::move(plan).build();
}

Plan reduce_over(const char* name, HostTree tree, int rails, const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(name, Collective::kReduce, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(name, Collective::kReduce, params.ranks, params.root, rails,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  std::vector<Trip> trips;
  for (int c = 0; c < rails; ++c) {
    Tree way = across(hosts, on_rail(hosts, c), tree, params.root);
    trips.push_back({Cargo::same(c), way_up(exchange, std::move(way)), {}});
  }
  for (int rank = 0; rank < params.ranks; ++rank) climb_all(plan, exchange, trips, rank, false);
  return std::move(plan).build();
}

}  // namespace tessera
