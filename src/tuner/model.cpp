#include "tuner/model.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <vector>

namespace tessera {
namespace {

// A chain of messages: those between hosts, and the others. One between hosts outweighs many within.
struct Chain {
  double crossings = 0, hops = 0;
  auto operator<=>(const Chain&) const = default;
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

// Whether two ranks are on different hosts.
class Apart {
 public:
  explicit Apart(const std::vector<int>& host_of) : host_of_(host_of) {}
  bool operator()(int a, int b) const { return !host_of_.empty() && host_of_[a] != host_of_[b]; }

 private:
  const std::vector<int>& host_of_;
};

class Walk {
 public:
  Walk(const Plan& plan, Apart apart)
      : plan_(plan), apart_(apart), counters_(plan.ranks), lanes_(plan.ranks) {
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
      if (apart_(rank, signal.rank)) {
        ++longer.chain.crossings;
      } else if (signal.rank != rank) {
        ++longer.chain.hops;
      }
      counter.past.join(longer);
    }
    return true;
  }

  const Plan& plan_;
  Apart apart_;
  std::vector<std::vector<CounterState>> counters_;
  std::vector<std::vector<LaneState>> lanes_;
};

// What passes between hosts: messages of the busiest rank, blocks of the busiest host.
void count_traffic(const Plan& plan, const std::vector<int>& host_of, PlanWork& work) {
  const Apart apart(host_of);
  std::map<int, double> sent, taken;  // blocks, by host
  std::vector<double> messages(plan.ranks);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (const Step& step : lane.steps) {
        for (const Ref& dst : step.dsts) {
          if (!apart(rank, dst.rank)) continue;
          const double blocks = static_cast<double>(step.chunks) / plan.chunks_per_block;
          sent[host_of[rank]] += blocks;
          taken[host_of[dst.rank]] += blocks;
        }
        for (const Signal& signal : step.signals) {
          if (!apart(rank, signal.rank)) continue;
          ++messages[rank];
          ++messages[signal.rank];
        }
      }
    }
  }
  for (const double count : messages) work.messages = std::max(work.messages, count);
  for (const auto* way : {&sent, &taken}) {
    for (const auto& [host, blocks] : *way) work.carried = std::max(work.carried, blocks);
  }
}

}  // namespace

PlanWork work_of(const Plan& plan, const std::vector<int>& host_of) {
  PlanWork work;
  const Past longest = Walk(plan, Apart(host_of)).run();
  work.hops = longest.chain.hops;
  work.crossings = longest.chain.crossings;
  work.path = longest.path;
  work.chunks = plan.chunks_per_block;
  if (!host_of.empty()) count_traffic(plan, host_of, work);
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
  double time = costs.call + work.hops * hop + work.crossings * site.network.latency;
  if (protocol != Protocol::kLowLatency)  // meeting
    time += 2 * (site.hosts > 1 ? site.network.latency : hop);
  double moving = work.copied / costs.copy + work.reduced / costs.reduce;
  if (protocol == Protocol::kSingleCopy) {
    moving = (work.copied + work.reduced) / costs.single_copy;
    time += work.moves * costs.single_copy_call * sharing;
  }
  const double messages = work.messages * site.network.message;
  const double carrying = work.carried / site.network.bandwidth;
  time += std::max(moving * sharing, work.path / costs.copy) * slice + messages + carrying * slice;
  if (rest <= 0) return time;
  const double passes = std::ceil(rest / slice);
  return time + std::max(passes * (work.moves * hop + messages) + moving * sharing * rest,
                         carrying * rest);
}

}  // namespace tessera
