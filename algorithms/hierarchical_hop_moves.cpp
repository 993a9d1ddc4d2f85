// One hop between hosts, for many small blocks that are only moved: leaders collect what their host
// has for another and send it as one message; see hierarchical_hop_blocks.cpp.
//
//      all-to-all   1 --> 0 \                        / --> 3        rows: the blocks of a sender
//                   2 --> 0 -- "from 1, from 2" --> 3 --> 4
//                        0 --- "from 0" ---------->                 its own, which lie elsewhere
//      gather       as one column of it, scatter as one row
//
// Two messages for each pair of hosts where ranks are numbered host by host, against l * l of a
// direct exchange. The leaders touch every block that leaves or enters: for blocks so small that
// messages cost more than copies.
//
// With h hosts of l ranks:
// Cost: all-to-all  2 alpha + alpha' + (h-1) l/h S (2 beta + beta')
//       gather      alpha + alpha' + (h-1)/h S (beta + beta')
//       scatter     alpha + alpha' + (h-1)/h S (beta + beta')
#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/hosts.h"

namespace tessera {
namespace {

constexpr const char* kHierarchicalHopMovesName = "hierarchical-hop";

// The members of a host without its leader.
std::vector<int> followers(const Hosts& hosts, int host) {
  return {hosts.ranks[host].begin() + 1, hosts.ranks[host].end()};
}

PlanBuilder builder(Collective collective, const AlgorithmParams& params) {
  return PlanBuilder(kHierarchicalHopMovesName, collective, params.ranks,
                     has_root(collective) ? params.root : -1, 1, params.scratch_depth);
}

// The all-to-all between two hosts, `from` to `to`, step by step for all ranks of both: the two
// halves are added to the lanes at different times.
class HostPair {
 public:
  HostPair(Exchange& exchange, const Hosts& hosts, int from, int to)
      : exchange_(exchange),
        hosts_(hosts),
        from_(from),
        to_(to),
        runs_(hosts.runs(to)),
        others_(followers(hosts, from)) {
    const int sender = hosts.leader(from), receiver = hosts.leader(to);
    for (const int rank : others_) {
      for (const BlockRun& run : runs_)
        collected_.push_back(exchange.slot(rank, sender, run.count));
    }
    if (!others_.empty())
      rows_ = exchange.slot(sender, receiver, hosts.size(to) * static_cast<int>(others_.size()));
    for (const BlockRun& run : runs_) own_.push_back(exchange.slot(sender, receiver, run.count));
    for (const int owner : followers(hosts, to)) {
      for (size_t row = 0; row < hosts.ranks[from].size(); ++row)
        handed_.push_back(exchange.slot(receiver, owner));
    }
  }

  // A follower gives its leader the blocks for the other host.
  void give(PlanBuilder& plan, int rank) const {
    const size_t row = std::find(others_.begin(), others_.end(), rank) - others_.begin();
    for (size_t i = 0; i < runs_.size(); ++i) {
      const Slot& slot = collected_[row * runs_.size() + i];
      StepRef put = plan.lane(rank).copy(0, slot.ref(), input(rank, runs_[i].first));
      exchange_.fill(put.span(runs_[i].count), slot);
    }
  }

  // The leader sends its own blocks, and those of its host.
  void send(PlanBuilder& plan) const {
    LaneRef lane = plan.lane(hosts_.leader(from_));
    for (size_t i = 0; i < runs_.size(); ++i) {
      StepRef put = lane.copy(0, own_[i].ref(), input(hosts_.leader(from_), runs_[i].first));
      exchange_.fill(put.span(runs_[i].count), own_[i]);
    }
    if (others_.empty()) return;
    StepRef put = lane.copy(0, rows_.ref(), collected_.front().ref()).span(rows_.chunks);
    for (const Slot& slot : collected_) exchange_.take(put, slot);
    exchange_.fill(put, rows_);
  }

  // The other leader keeps its blocks and hands the others out, row by row.
  void hand_out(PlanBuilder& plan) const {
    const std::vector<int>& senders = hosts_.ranks[from_];
    for (size_t row = 0; row < senders.size(); ++row) {
      int column = 0;
      for (size_t i = 0; i < runs_.size(); ++i) {
        for (int j = 0; j < runs_[i].count; ++j, ++column) {
          const Slot& in = row == 0 ? own_[i] : rows_;
          const int chunk = row == 0 ? j : (static_cast<int>(row) - 1) * hosts_.size(to_) + column;
          const bool first = row == 0 ? j == 0 : row == 1 && column == 0;
          const bool last = row == 0 ? j == runs_[i].count - 1
                                     : row + 1 == senders.size() && column == hosts_.size(to_) - 1;
          StepRef step = hand(plan, senders[row], row, column, in.ref(chunk));
          if (first) exchange_.await(step, in);
          if (last) exchange_.release(step, in);
        }
      }
    }
  }

  // A follower of the other host takes its column.
  void take(PlanBuilder& plan, int rank) const {
    const std::vector<int>& members = hosts_.ranks[to_];
    const size_t column = std::find(members.begin(), members.end(), rank) - members.begin();
    for (size_t row = 0; row < hosts_.ranks[from_].size(); ++row) {
      const Slot& slot = handed(row, column);
      const int sender = hosts_.ranks[from_][row];
      exchange_.take(plan.lane(rank).copy(0, output(rank, sender), slot.ref()), slot);
    }
  }

 private:
  const Slot& handed(size_t row, size_t column) const {
    return handed_[(column - 1) * hosts_.ranks[from_].size() + row];
  }

  StepRef hand(PlanBuilder& plan, int sender, size_t row, int column, Ref block) const {
    LaneRef lane = plan.lane(hosts_.leader(to_));
    if (column == 0) return lane.copy(0, output(hosts_.leader(to_), sender), block);
    const Slot& slot = handed(row, static_cast<size_t>(column));
    StepRef step = lane.copy(0, slot.ref(), block);
    exchange_.fill(step, slot);
    return step;
  }

  const Exchange& exchange_;
  const Hosts& hosts_;
  int from_, to_;
  std::vector<BlockRun> runs_;  // of the receiving host's ranks
  std::vector<int> others_;     // the sending host's ranks without its leader
  std::vector<Slot> collected_, own_, handed_;
  Slot rows_;
};

// Blocks among ranks of one host.
void exchange_near(PlanBuilder& plan, Exchange& exchange, const Hosts& hosts, int host) {
  const std::vector<int>& members = hosts.ranks[host];
  const int l = hosts.size(host);
  std::vector<std::vector<Slot>> slots(l, std::vector<Slot>(l));
  for (int i = 0; i < l; ++i) {
    LaneRef lane = plan.lane(members[i]);
    lane.copy(0, output(members[i], members[i]), input(members[i], members[i]));
    for (int s = 1; s < l; ++s) {
      const int j = (i + s) % l;
      slots[i][j] = exchange.slot(members[i], members[j]);
      exchange.fill(lane.copy(0, slots[i][j].ref(), input(members[i], members[j])), slots[i][j]);
    }
  }
  for (int i = 0; i < l; ++i) {
    for (int s = 1; s < l; ++s) {
      const int from = (i - s + l) % l;
      const Slot& slot = slots[from][i];
      exchange.take(plan.lane(members[i]).copy(0, output(members[i], members[from]), slot.ref()),
                    slot);
    }
  }
}

}  // namespace

Plan hierarchical_hop_all_to_all(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(kHierarchicalHopMovesName, Collective::kAllToAll, params);
  const Hosts hosts = hosts_of(params);
  const int h = hosts.count();
  PlanBuilder plan = builder(Collective::kAllToAll, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::symmetric(params));
  std::vector<std::vector<HostPair>> pairs(h);  // [from][s - 1]: to the host s further on
  for (int from = 0; from < h; ++from) {
    for (int s = 1; s < h; ++s) pairs[from].emplace_back(exchange, hosts, from, (from + s) % h);
  }
  for (int host = 0; host < h; ++host) {
    for (const HostPair& pair : pairs[host]) {
      for (const int rank : followers(hosts, host)) pair.give(plan, rank);
    }
    for (const HostPair& pair : pairs[host]) pair.send(plan);
    exchange_near(plan, exchange, hosts, host);
  }
  for (int host = 0; host < h; ++host) {
    for (int s = 1; s < h; ++s) {
      const HostPair& pair = pairs[wrap(host - s, h)][s - 1];
      pair.hand_out(plan);
      for (const int rank : followers(hosts, host)) pair.take(plan, rank);
    }
  }
  return std::move(plan).build();
}

Plan hierarchical_hop_gather(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(kHierarchicalHopMovesName, Collective::kGather, params);
  const Hosts hosts = hosts_of(params);
  const int root = params.root, home = hosts.of[root];
  PlanBuilder plan = builder(Collective::kGather, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  LaneRef at_root = plan.lane(root);
  at_root.copy(0, output(root, root), input(root, 0));
  // Leaders of other hosts, and all of the own, reach the root with their own block.
  for (int s = 1; s < params.ranks; ++s) {
    const int rank = (root + s) % params.ranks;
    if (hosts.of[rank] != home && !hosts.leads(rank)) continue;
    const Slot slot = exchange.slot(rank, root);
    exchange.fill(plan.lane(rank).copy(0, slot.ref(), input(rank, 0)), slot);
    exchange.take(at_root.copy(0, output(root, rank), slot.ref()), slot);
  }
  for (int s = 1; s < hosts.count(); ++s) {
    const int host = (home + s) % hosts.count(), leader = hosts.leader(host);
    const std::vector<int> others = followers(hosts, host);
    if (others.empty()) continue;
    const Slot all = exchange.slot(leader, root, static_cast<int>(others.size()));
    std::vector<Slot> collected;
    for (const int rank : others) {
      collected.push_back(exchange.slot(rank, leader));
      exchange.fill(plan.lane(rank).copy(0, collected.back().ref(), input(rank, 0)),
                    collected.back());
    }
    StepRef put = plan.lane(leader).copy(0, all.ref(), collected.front().ref()).span(all.chunks);
    for (const Slot& slot : collected) exchange.take(put, slot);
    exchange.fill(put, all);
    for (int i = 0; i < all.chunks; ++i) {
      StepRef step = at_root.copy(0, output(root, others[i]), all.ref(i));
      if (i == 0) exchange.await(step, all);
      if (i == all.chunks - 1) exchange.release(step, all);
    }
  }
  return std::move(plan).build();
}

Plan hierarchical_hop_scatter(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone(kHierarchicalHopMovesName, Collective::kScatter, params);
  const Hosts hosts = hosts_of(params);
  const int root = params.root, home = hosts.of[root];
  PlanBuilder plan = builder(Collective::kScatter, params);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  LaneRef at_root = plan.lane(root);
  const auto hand = [&](int from, Ref block, int rank) {
    if (from == rank) return plan.lane(rank).copy(0, output(rank, 0), block);
    const Slot slot = exchange.slot(from, rank);
    StepRef step = plan.lane(from).copy(0, slot.ref(), block);
    exchange.fill(step, slot);
    exchange.take(plan.lane(rank).copy(0, output(rank, 0), slot.ref()), slot);
    return step;
  };
  for (int s = 1; s < hosts.count(); ++s) {
    const int host = (home + s) % hosts.count(), leader = hosts.leader(host);
    for (const BlockRun& run : hosts.runs(host)) {
      const Slot slot = exchange.slot(root, leader, run.count);
      StepRef put = at_root.copy(0, slot.ref(), input(root, run.first)).span(run.count);
      exchange.fill(put, slot);
      for (int i = 0; i < run.count; ++i) {
        StepRef step = hand(leader, slot.ref(i), run.first + i);
        if (i == 0) exchange.await(step, slot);
        if (i == run.count - 1) exchange.release(step, slot);
      }
    }
  }
  for (const int rank : hosts.ranks[home]) hand(root, input(root, rank), rank);
  return std::move(plan).build();
}

}  // namespace tessera
