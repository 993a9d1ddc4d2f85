// One hop between hosts, for small messages: only one rank of each host, its leader, talks to other
// hosts.
//
// All-reduce: the leader adds up its host, all leaders send each other their hosts' sums, and each
// adds these up in the order of hosts, so that all ranks end bitwise equal.
//
//      host 0              host 1
//      1 --> 0 <---------> 3 <-- 4          up, across, down
//      2 -->               |
//            |             +---> 4
//            +--> 1, 2
//
// Broadcast and reduce: between the root and the other hosts' leaders, which hand on or gather.
// Barrier: leaders gather their hosts, tell each other in rounds of doubling distance, and release
// their hosts.
//
// Messages between hosts: one from each host to each other (all-reduce), one for each other host
// (broadcast, reduce), ceil(log2 h) from each host (barrier).
//
// With h hosts:
// Cost: all-reduce  2 alpha + alpha' + (l-1) S (2 beta + gamma) + (h-1) S (beta' + gamma)
//       broadcast   alpha + alpha' + (l-1) S beta + (h-1) S beta'
//       reduce      alpha + alpha' + (l-1) S (beta + gamma) + (h-1) S (beta' + gamma)
//       barrier     2 alpha + ceil(log2 h) alpha'
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/host_trees.h"

namespace tessera {
namespace {

constexpr const char* kHierarchicalHopName = "hierarchical-hop";

struct Hops {
  std::vector<Slot> up, down;             // by rank that is no leader
  std::vector<std::vector<Slot>> across;  // [from][to], of hosts
};

Hops make_hops(Exchange& exchange, const Hosts& hosts) {
  const int n = static_cast<int>(hosts.of.size());
  Hops hops{std::vector<Slot>(n), std::vector<Slot>(n), {}};
  hops.across.resize(hosts.count(), std::vector<Slot>(hosts.count()));
  for (int rank = 0; rank < n; ++rank) {
    if (hosts.leads(rank)) continue;
    hops.up[rank] = exchange.slot(rank, hosts.leader(hosts.of[rank]));
    hops.down[rank] = exchange.slot(hosts.leader(hosts.of[rank]), rank);
  }
  for (int to = 0; to < hosts.count(); ++to) {
    for (int from = 0; from < hosts.count(); ++from) {
      if (from == to) continue;
      hops.across[from][to] = exchange.slot(hosts.leader(from), hosts.leader(to));
    }
  }
  return hops;
}

// The sum of the host's ranks, in their order, to all other leaders. Returns where the own host's
// sum is: the output, or the input of a rank that is alone.
Ref sum_host(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts, const Hops& hops,
             int host) {
  const int leader = hosts.leader(host);
  const bool alone_here = hosts.size(host) == 1;
  std::vector<Ref> dsts, srcs;
  if (!alone_here) dsts.push_back(output(leader, 0));
  for (int s = 1; s < hosts.count(); ++s)
    dsts.push_back(hops.across[host][(host + s) % hosts.count()].ref());
  for (const int rank : hosts.ranks[host])
    srcs.push_back(rank == leader ? input(rank, 0) : hops.up[rank].ref());
  LaneRef lane = plan.lane(leader);
  StepRef step = alone_here ? lane.copy(0, std::move(dsts), srcs.front())
                            : lane.reduce(0, std::move(dsts), std::move(srcs));
  for (const int rank : hosts.ranks[host]) {
    if (rank != leader) exchange.take(step, hops.up[rank]);
  }
  for (int s = 1; s < hosts.count(); ++s)
    exchange.fill(step, hops.across[host][(host + s) % hosts.count()]);
  return alone_here ? input(leader, 0) : output(leader, 0);
}

// The sums of all hosts, in their order, to all ranks of the host.
void sum_all(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts, const Hops& hops,
             int host, Ref own) {
  const int leader = hosts.leader(host);
  std::vector<Ref> dsts{output(leader, 0)}, srcs;
  for (const int rank : hosts.ranks[host]) {
    if (rank != leader) dsts.push_back(hops.down[rank].ref());
  }
  for (int from = 0; from < hosts.count(); ++from)
    srcs.push_back(from == host ? own : hops.across[from][host].ref());
  StepRef step = plan.lane(leader).reduce(0, std::move(dsts), std::move(srcs));
  for (int from = 0; from < hosts.count(); ++from) {
    if (from != host) exchange.take(step, hops.across[from][host]);
  }
  for (const int rank : hosts.ranks[host]) {
    if (rank != leader) exchange.fill(step, hops.down[rank]);
  }
}

// Every leader tells the one `distance` hosts further on; `told`: the leaders' counters of the round
// before.
std::vector<int> barrier_round(PlanBuilder& plan, const Hosts& hosts, int distance,
                               const std::vector<std::vector<int>>& gathered,
                               const std::vector<int>& told) {
  std::vector<int> now(hosts.count());
  for (int host = 0; host < hosts.count(); ++host) now[host] = plan.counter(hosts.leader(host));
  for (int host = 0; host < hosts.count(); ++host) {
    StepRef step = plan.lane(hosts.leader(host)).sync();
    if (told.empty()) {
      for (const int counter : gathered[host]) step.wait(counter);
    } else {
      step.wait(told[host]);
    }
    const int to = (host + distance) % hosts.count();
    step.signal(hosts.leader(to), now[to]);
  }
  return now;
}

}  // namespace

Plan hierarchical_hop_all_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kHierarchicalHopName, Collective::kAllReduce, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(kHierarchicalHopName, Collective::kAllReduce, n, -1, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Hops hops = make_hops(exchange, hosts);
  for (int rank = 0; rank < n; ++rank) {
    if (hosts.leads(rank)) {
      const int host = hosts.of[rank];
      sum_all(plan, exchange, hosts, hops, host, sum_host(plan, exchange, hosts, hops, host));
      continue;
    }
    LaneRef lane = plan.lane(rank);
    exchange.fill(lane.copy(0, hops.up[rank].ref(), input(rank, 0)), hops.up[rank]);
    exchange.take(lane.copy(0, output(rank, 0), hops.down[rank].ref()), hops.down[rank]);
  }
  return std::move(plan).build();
}

Plan hierarchical_hop_broadcast(const AlgorithmParams& params) {
  return broadcast_over(kHierarchicalHopName, star_of_hosts, 1, params);
}

Plan hierarchical_hop_reduce(const AlgorithmParams& params) {
  return reduce_over(kHierarchicalHopName, star_of_hosts, 1, params);
}

Plan hierarchical_barrier(const AlgorithmParams& params) {
  constexpr const char* kBarrier = "hierarchical";
  const int n = params.ranks;
  if (n == 1) return alone(kBarrier, Collective::kBarrier, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(kBarrier, Collective::kBarrier, n, -1, 1, 1);
  std::vector<std::vector<int>> gathered(hosts.count());
  std::vector<int> released(n);
  for (int rank = 0; rank < n; ++rank) {
    if (hosts.leads(rank)) continue;
    const int host = hosts.of[rank], leader = hosts.leader(host);
    gathered[host].push_back(plan.counter(leader));
    released[rank] = plan.counter(rank);
    plan.lane(rank).sync().signal(leader, gathered[host].back());
    plan.lane(rank).sync().wait(released[rank]);
  }
  std::vector<int> told;
  for (int distance = 1; distance < hosts.count(); distance *= 2)
    told = barrier_round(plan, hosts, distance, gathered, told);
  for (int host = 0; host < hosts.count(); ++host) {
    StepRef step = plan.lane(hosts.leader(host)).sync();
    if (!told.empty()) step.wait(told[host]);
    for (const int rank : hosts.ranks[host]) {
      if (!hosts.leads(rank)) step.signal(rank, released[rank]);
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
