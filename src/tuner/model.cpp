#include "tuner/model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace tessera {
namespace {

// A chain of messages: those between hosts, those between NUMA nodes, and the others. One between
// hosts outweighs many within.
struct Chain {
  double crossings = 0;
  double within = 0;  // what the others take where ranks have cores of their own
  double hops = 0, strides = 0;
  bool operator<(const Chain& other) const {
    return std::pair(crossings, within) < std::pair(other.crossings, other.within);
  }
};

// What came before: the longest chain, and the most blocks that were moved one after the other,
// which need not be along that chain.
struct Past {
  Chain chain;
  double path = 0;
  void join(const Past& other) {
    chain = std::max(chain, other.chain);
    path = std::max(path, other.path);
  }
};

struct LaneState {
  size_t next = 0;
  Past past;
};

// Value of each counter and what it announces.
struct CounterState {
  uint64_t value = 0;
  Past past;
};

double copied_by(const Plan& plan, const Step& step) {
  if (step.op == Op::kSync) return 0;
  const double blocks = static_cast<double>(step.chunks) / plan.chunks_per_block;
  return blocks * static_cast<double>(step.dsts.size());
}

double reduced_by(const Plan& plan, const Step& step) {
  if (step.op != Op::kReduce) return 0;
  const double blocks = static_cast<double>(step.chunks) / plan.chunks_per_block;
  return blocks * static_cast<double>(step.srcs.size());
}

// What lies between two ranks.
class Between {
 public:
  explicit Between(const Site& site) : site_(site) {}
  bool hosts(int a, int b) const { return differ(site_.host_of, a, b); }
  bool nodes(int a, int b) const { return !hosts(a, b) && differ(site_.node_of, a, b); }
  void add_message(Chain& chain, int from, int to) const {
    constexpr double kHop = HostCosts{}.hop;
    if (from == to) return;
    if (hosts(from, to)) {
      ++chain.crossings;
    } else if (nodes(from, to)) {
      ++chain.strides;
      chain.within += kHop + site_.between_nodes.latency;
    } else {
      ++chain.hops;
      chain.within += kHop;
    }
  }

 private:
  static bool differ(const std::vector<int>& of, int a, int b) {
    return !of.empty() && of[static_cast<size_t>(a)] != of[static_cast<size_t>(b)];
  }
  const Site& site_;
};

class Walk {
 public:
  Walk(const Plan& plan, Between between)
      : plan_(plan), between_(between), counters_(plan.ranks), lanes_(plan.ranks) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      counters_[rank].resize(plan.programs[rank].counters.size());
      lanes_[rank].resize(plan.programs[rank].lanes.size());
    }
  }

  // Every lane goes on as far as it can, round after round; a verified plan ends.
  Past run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        for (size_t lane = 0; lane < lanes_[rank].size(); ++lane) {
          while (advance(rank, lane)) moved = true;
        }
      }
    }
    Past longest;
    for (const auto& lanes : lanes_) {
      for (const LaneState& lane : lanes) longest.join(lane.past);
    }
    return longest;
  }

 private:
  bool advance(int rank, size_t lane) {
    LaneState& at = lanes_[rank][lane];
    const auto& steps = plan_.programs[rank].lanes[lane].steps;
    if (at.next == steps.size()) return false;
    const Step& step = steps[at.next];
    Past past = at.past;
    for (const Wait& wait : step.waits) {
      if (wait.lag > 0) continue;  // of an earlier pass
      const CounterInfo& info = plan_.programs[rank].counters[wait.counter];
      if (info.kind == CounterKind::kExternal) continue;
      const CounterState& counter = counters_[rank][wait.counter];
      if (counter.value < wait.increment) return false;
      past.join(counter.past);
    }
    past.path += copied_by(plan_, step) + reduced_by(plan_, step);
    at.past = past;
    ++at.next;
    for (const Signal& signal : step.signals) {
      CounterState& counter = counters_[signal.rank][signal.counter];
      counter.value += signal.increment;
      Past longer = past;
      between_.add_message(longer.chain, rank, signal.rank);
      counter.past.join(longer);
    }
    return true;
  }

  const Plan& plan_;
  Between between_;
  std::vector<std::vector<CounterState>> counters_;
  std::vector<std::vector<LaneState>> lanes_;
};

// Blocks that leave or enter the busiest of some groups of ranks.
class Traffic {
 public:
  explicit Traffic(const std::vector<int>& group_of) : group_of_(group_of) {}
  void add(int from, int to, double blocks) {
    sent_[group_of_[static_cast<size_t>(from)]] += blocks;
    taken_[group_of_[static_cast<size_t>(to)]] += blocks;
  }
  double most() const {
    double most = 0;
    for (const auto* way : {&sent_, &taken_}) {
      for (const auto& [group, blocks] : *way) most = std::max(most, blocks);
    }
    return most;
  }

 private:
  const std::vector<int>& group_of_;
  std::map<int, double> sent_, taken_;
};

void count_traffic(const Plan& plan, const Site& site, PlanWork& work) {
  const Between between(site);
  Traffic of_hosts(site.host_of), of_nodes(site.node_of);
  std::vector<double> messages(static_cast<size_t>(plan.ranks));
  const auto move = [&](int from, int to, double blocks) {
    if (between.hosts(from, to)) of_hosts.add(from, to, blocks);
    if (between.nodes(from, to)) of_nodes.add(from, to, blocks);
  };
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (const Step& step : lane.steps) {
        const double blocks = static_cast<double>(step.chunks) / plan.chunks_per_block;
        for (const Ref& dst : step.dsts) move(rank, dst.rank, blocks);
        for (const Ref& src : step.srcs) move(src.rank, rank, blocks);
        for (const Signal& signal : step.signals) {
          if (!between.hosts(rank, signal.rank)) continue;
          ++messages[rank];
          ++messages[signal.rank];
        }
      }
    }
  }
  for (const double count : messages) work.messages = std::max(work.messages, count);
  work.carried = of_hosts.most();
  work.bridged = of_nodes.most();
}

}  // namespace

PlanWork work_of(const Plan& plan, const Site& site) {
  PlanWork work;
  const Past longest = Walk(plan, Between(site)).run();
  work.hops = longest.chain.hops;
  work.strides = longest.chain.strides;
  work.crossings = longest.chain.crossings;
  work.path = longest.path;
  work.chunks = plan.chunks_per_block;
  if (!site.host_of.empty() || !site.node_of.empty()) count_traffic(plan, site, work);
  for (const RankProgram& program : plan.programs) {
    double copied = 0, reduced = 0, moves = 0;
    for (const Lane& lane : program.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op == Op::kSync) continue;
        copied += copied_by(plan, step);
        reduced += reduced_by(plan, step);
        moves += 1;
      }
    }
    work.copied = std::max(work.copied, copied);
    work.reduced = std::max(work.reduced, reduced);
    work.moves = std::max(work.moves, moves);
  }
  return work;
}

double model_time(const PlanWork& work, Protocol protocol, const Site& site, size_t block_bytes,
                  size_t slot_bytes, const HostCosts& costs) {
  const double hop = site.crowded ? costs.crowded_hop : costs.hop;
  const double sharing =
      site.crowded ? static_cast<double>(site.ranks) / std::max(1, site.cores) : 1;
  const auto bytes = static_cast<double>(block_bytes);
  const double most = static_cast<double>(slot_bytes) * work.chunks;
  const double slice = slot_bytes == 0 ? bytes : std::min(bytes, most);
  const double rest = bytes - slice;
  double time = costs.call + work.hops * hop + work.strides * (hop + site.between_nodes.latency) +
                work.crossings * site.network.latency;
  if (protocol != Protocol::kLowLatency)  // meeting
    time += 2 * (site.hosts > 1 ? site.network.latency : hop);
  double moving = work.copied / costs.copy + work.reduced / costs.reduce;
  if (protocol == Protocol::kSingleCopy) {
    moving = (work.copied + work.reduced) / costs.single_copy;
    time += work.moves * costs.single_copy_call * sharing;
  }
  const double messages = work.messages * site.network.message;
  const double carrying = work.carried / site.network.bandwidth;
  const double bridging = work.bridged / site.between_nodes.bandwidth;
  time += std::max({moving * sharing, work.path / costs.copy, bridging}) * slice + messages +
          carrying * slice;
  if (rest <= 0) return time;
  const double passes = std::ceil(rest / slice);
  return time + std::max(passes * (work.moves * hop + messages) + moving * sharing * rest,
                         std::max(bridging, carrying) * rest);
}

}  // namespace tessera
