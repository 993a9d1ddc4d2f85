// One hop between hosts, for many small blocks: what a host has for another goes in one message,
// from leader to leader.
//
//      all-gather      host 0: 0 1 2     all tell their neighbours; 0 sends "0 1 2" to 3 and gets
//                      host 1: 3 4       "3 4", which it hands on to 1 and 2
//      reduce-scatter  all give their leader all blocks; it adds them up, sends the sums for "3 4" to
//                      3, adds what comes for "0 1 2" and hands that out
//
// Where a host's ranks are not numbered one after the other, each run of numbers is one message.
//
// With h hosts of l ranks, S as for the collective on one host:
// Cost: all-gather      2 alpha + alpha' + (h-1)/h S (l beta + beta')
//       reduce-scatter  2 alpha + alpha' + l S (beta + gamma) + (h-1)/h S (beta' + gamma)
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/hosts.h"

namespace tessera {
namespace {

constexpr const char* kHierarchicalHopBlocksName = "hierarchical-hop";

// A host's runs of blocks at one receiver.
struct Parcel {
  std::vector<BlockRun> runs;
  std::vector<Slot> slots;  // one for each run
};

Parcel parcel(Exchange& exchange, const Hosts& hosts, int host, int from, int to) {
  Parcel parcel{hosts.runs(host), {}};
  for (const BlockRun& run : parcel.runs)
    parcel.slots.push_back(exchange.slot(from, to, run.count));
  return parcel;
}

// [from][to], of hosts: the blocks of host `blocks_of(from, to)` from leader to leader.
template <class BlocksOf>
std::vector<std::vector<Parcel>> parcels_between(Exchange& exchange, const Hosts& hosts,
                                                 BlocksOf blocks_of) {
  const int h = hosts.count();
  std::vector<std::vector<Parcel>> parcels(h, std::vector<Parcel>(h));
  for (int to = 0; to < h; ++to) {
    for (int from = 0; from < h; ++from) {
      if (from == to) continue;
      parcels[from][to] =
          parcel(exchange, hosts, blocks_of(from, to), hosts.leader(from), hosts.leader(to));
    }
  }
  return parcels;
}

// --- all-gather

struct Gathering {
  std::vector<std::vector<Slot>> near;       // [from][to], of ranks on one host
  std::vector<std::vector<Parcel>> across;   // [from][to], of hosts: the sender's blocks
  std::vector<std::vector<Parcel>> onwards;  // [host][rank]: the host's blocks from rank's leader
};

Gathering make_gathering(Exchange& exchange, const Hosts& hosts) {
  const int n = static_cast<int>(hosts.of.size());
  Gathering made;
  made.near.resize(n, std::vector<Slot>(n));
  made.across = parcels_between(exchange, hosts, [](int from, int) { return from; });
  made.onwards.resize(hosts.count(), std::vector<Parcel>(n));
  for (int to = 0; to < n; ++to) {
    const int home = hosts.of[to];
    for (const int from : hosts.ranks[home]) {
      if (from != to) made.near[from][to] = exchange.slot(from, to);
    }
    if (hosts.leads(to)) continue;
    for (int host = 0; host < hosts.count(); ++host) {
      if (host != home)
        made.onwards[host][to] = parcel(exchange, hosts, host, hosts.leader(home), to);
    }
  }
  return made;
}

void gather_near(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts,
                 const Gathering& slots, int rank) {
  const std::vector<int>& mates = hosts.ranks[hosts.of[rank]];
  std::vector<Ref> dsts{output(rank, rank)};
  for (const int mate : mates) {
    if (mate != rank) dsts.push_back(slots.near[rank][mate].ref());
  }
  StepRef put = plan.lane(rank).copy(0, std::move(dsts), input(rank, 0));
  for (const int mate : mates) {
    if (mate != rank) exchange.fill(put, slots.near[rank][mate]);
  }
  for (const int mate : mates) {
    if (mate == rank) continue;
    const Slot& slot = slots.near[mate][rank];
    exchange.take(plan.lane(rank).copy(0, output(rank, mate), slot.ref()), slot);
  }
}

// A leader sends its host's blocks to all other leaders.
void send_across(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts,
                 const Gathering& slots, int host) {
  const int leader = hosts.leader(host), h = hosts.count();
  const std::vector<BlockRun> runs = hosts.runs(host);
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<Ref> dsts;
    for (int s = 1; s < h; ++s) dsts.push_back(slots.across[host][(host + s) % h].slots[i].ref());
    StepRef put = plan.lane(leader)
                      .copy(0, std::move(dsts), output(leader, runs[i].first))
                      .span(runs[i].count);
    for (int s = 1; s < h; ++s) exchange.fill(put, slots.across[host][(host + s) % h].slots[i]);
  }
}

// A rank keeps the blocks of another host; a leader hands them on.
void take_from(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts,
               const Gathering& slots, int host, int rank) {
  const int home = hosts.of[rank];
  const bool leads = hosts.leads(rank);
  const Parcel& in = leads ? slots.across[host][home] : slots.onwards[host][rank];
  for (size_t i = 0; i < in.runs.size(); ++i) {
    std::vector<Ref> dsts{output(rank, in.runs[i].first)};
    for (const int mate : hosts.ranks[home]) {
      if (leads && mate != rank) dsts.push_back(slots.onwards[host][mate].slots[i].ref());
    }
    StepRef step =
        plan.lane(rank).copy(0, std::move(dsts), in.slots[i].ref()).span(in.runs[i].count);
    exchange.take(step, in.slots[i]);
    for (const int mate : hosts.ranks[home]) {
      if (leads && mate != rank) exchange.fill(step, slots.onwards[host][mate].slots[i]);
    }
  }
}

// --- reduce-scatter

struct Scattering {
  std::vector<std::vector<Parcel>> near;    // [rank][host]: blocks for the host, to the leader
  std::vector<std::vector<Parcel>> across;  // [from][to], of hosts: sums of the receiver's blocks
  std::vector<Slot> results;                // by rank that is no leader
};

Scattering make_scattering(Exchange& exchange, const Hosts& hosts) {
  const int n = static_cast<int>(hosts.of.size());
  Scattering made;
  made.near.resize(n, std::vector<Parcel>(hosts.count()));
  made.across = parcels_between(exchange, hosts, [](int, int to) { return to; });
  made.results.resize(n);
  for (int rank = 0; rank < n; ++rank) {
    if (hosts.leads(rank)) continue;
    const int leader = hosts.leader(hosts.of[rank]);
    for (int host = 0; host < hosts.count(); ++host)
      made.near[rank][host] = parcel(exchange, hosts, host, rank, leader);
    made.results[rank] = exchange.slot(leader, rank);
  }
  return made;
}

// A leader sends another host the sums for it.
void send_sums(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts,
               const Scattering& slots, int host, int to) {
  const int leader = hosts.leader(host);
  const Parcel& out = slots.across[host][to];
  for (size_t i = 0; i < out.runs.size(); ++i) {
    std::vector<Ref> srcs;
    for (const int mate : hosts.ranks[host]) {
      srcs.push_back(mate == leader ? input(leader, out.runs[i].first)
                                    : slots.near[mate][to].slots[i].ref());
    }
    LaneRef lane = plan.lane(leader);
    StepRef step = srcs.size() == 1 ? lane.copy(0, out.slots[i].ref(), srcs.front())
                                    : lane.reduce(0, {out.slots[i].ref()}, std::move(srcs));
    step.span(out.runs[i].count);
    for (const int mate : hosts.ranks[host]) {
      if (mate != leader) exchange.take(step, slots.near[mate][to].slots[i]);
    }
    exchange.fill(step, out.slots[i]);
  }
}

// A leader completes the i-th run of its host's blocks and hands them out.
void complete_run(PlanBuilder& plan, const Exchange& exchange, const Hosts& hosts,
                  const Scattering& slots, int host, size_t i) {
  const int leader = hosts.leader(host);
  const BlockRun run = hosts.runs(host)[i];
  for (int j = 0; j < run.count; ++j) {
    const int owner = run.first + j;
    std::vector<const Slot*> from;
    for (const int mate : hosts.ranks[host]) {
      if (mate != leader) from.push_back(&slots.near[mate][host].slots[i]);
    }
    for (int other = 0; other < hosts.count(); ++other) {
      if (other != host) from.push_back(&slots.across[other][host].slots[i]);
    }
    std::vector<Ref> srcs{input(leader, owner)};
    for (const Slot* slot : from) srcs.push_back(slot->ref(j));
    const Ref dst = owner == leader ? output(leader, 0) : slots.results[owner].ref();
    StepRef step = plan.lane(leader).reduce(0, {dst}, std::move(srcs));
    for (const Slot* slot : from) {
      if (j == 0) exchange.await(step, *slot);
      if (j == run.count - 1) exchange.release(step, *slot);
    }
    if (owner != leader) exchange.fill(step, slots.results[owner]);
  }
}

}  // namespace

Plan hierarchical_hop_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kHierarchicalHopBlocksName, Collective::kAllGather, params);
  const Hosts hosts = hosts_of(params);
  PlanBuilder plan(kHierarchicalHopBlocksName, Collective::kAllGather, n, -1, 1,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Gathering slots = make_gathering(exchange, hosts);
  for (int rank = 0; rank < n; ++rank) {
    const int home = hosts.of[rank];
    gather_near(plan, exchange, hosts, slots, rank);
    if (hosts.leads(rank)) send_across(plan, exchange, hosts, slots, home);
    for (int s = 1; s < hosts.count(); ++s) {
      const int host = wrap(home - s, hosts.count());
      take_from(plan, exchange, hosts, slots, host, rank);
    }
  }
  return std::move(plan).build();
}

Plan hierarchical_hop_reduce_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kHierarchicalHopBlocksName, Collective::kReduceScatter, params);
  const Hosts hosts = hosts_of(params);
  const int h = hosts.count();
  PlanBuilder plan(kHierarchicalHopBlocksName, Collective::kReduceScatter, n, -1, 1,
                   params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  const Scattering slots = make_scattering(exchange, hosts);
  for (int rank = 0; rank < n; ++rank) {
    const int home = hosts.of[rank];
    if (hosts.leads(rank)) {
      for (int s = 1; s < h; ++s) send_sums(plan, exchange, hosts, slots, home, (home + s) % h);
      for (size_t i = 0; i < hosts.runs(home).size(); ++i)
        complete_run(plan, exchange, hosts, slots, home, i);
      continue;
    }
    LaneRef lane = plan.lane(rank);
    for (int s = 1; s <= h; ++s) {
      const Parcel& out = slots.near[rank][(home + s) % h];
      for (size_t i = 0; i < out.runs.size(); ++i) {
        StepRef put = lane.copy(0, out.slots[i].ref(), input(rank, out.runs[i].first));
        put.span(out.runs[i].count);
        exchange.fill(put, out.slots[i]);
      }
    }
    const Slot& result = slots.results[rank];
    exchange.take(lane.copy(0, output(rank, 0), result.ref()), result);
  }
  return std::move(plan).build();
}

}  // namespace tessera
