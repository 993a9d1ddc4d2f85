#include "tuner/model.h"

#include <algorithm>
#include <vector>

namespace tessera {
namespace {

struct LaneState {
  size_t next = 0;
  double hops = 0;
};

// Value of each counter and the longest chain of messages that it announces.
struct CounterState {
  uint64_t value = 0;
  double hops = 0;
};

class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), counters_(plan.ranks), lanes_(plan.ranks) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      counters_[rank].resize(plan.programs[rank].counters.size());
      lanes_[rank].resize(plan.programs[rank].lanes.size());
    }
  }

  // Every lane goes on as far as it can, round after round; a verified plan ends.
  double longest_chain() {
    double longest = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        for (size_t lane = 0; lane < lanes_[rank].size(); ++lane) {
          while (advance(rank, lane)) moved = true;
          longest = std::max(longest, lanes_[rank][lane].hops);
        }
      }
    }
    return longest;
  }

 private:
  bool advance(int rank, size_t lane) {
    LaneState& at = lanes_[rank][lane];
    const auto& steps = plan_.programs[rank].lanes[lane].steps;
    if (at.next == steps.size()) return false;
    const Step& step = steps[at.next];
    double hops = at.hops;
    for (const Wait& wait : step.waits) {
      if (wait.lag > 0) continue;  // of an earlier pass
      const CounterInfo& info = plan_.programs[rank].counters[wait.counter];
      if (info.kind == CounterKind::kExternal) continue;
      const CounterState& counter = counters_[rank][wait.counter];
      if (counter.value < wait.increment) return false;
      hops = std::max(hops, counter.hops);
    }
    at.hops = hops;
    ++at.next;
    for (const Signal& signal : step.signals) {
      CounterState& counter = counters_[signal.rank][signal.counter];
      counter.value += signal.increment;
      counter.hops = std::max(counter.hops, hops + (signal.rank == rank ? 0 : 1));
    }
    return true;
  }

  const Plan& plan_;
  std::vector<std::vector<CounterState>> counters_;
  std::vector<std::vector<LaneState>> lanes_;
};

}  // namespace

PlanWork work_of(const Plan& plan) {
  PlanWork work;
  work.hops = Walk(plan).longest_chain();
  for (const RankProgram& program : plan.programs) {
    double copied = 0, reduced = 0, moves = 0;
    for (const Lane& lane : program.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op == Op::kSync) continue;
        const double blocks = static_cast<double>(step.chunks) / plan.chunks_per_block;
        copied += blocks * static_cast<double>(step.dsts.size());
        if (step.op == Op::kReduce) reduced += blocks * static_cast<double>(step.srcs.size());
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
                  const HostCosts& costs) {
  const double hop = site.crowded ? costs.crowded_hop : costs.hop;
  const double sharing =
      site.crowded ? static_cast<double>(site.ranks) / std::max(1, site.cores) : 1;
  const auto bytes = static_cast<double>(block_bytes);
  double time = costs.call + work.hops * hop;
  if (protocol != Protocol::kLowLatency) time += 2 * hop;  // meeting
  double moving = work.copied / costs.copy + work.reduced / costs.reduce;
  if (protocol == Protocol::kSingleCopy) {
    moving = (work.copied + work.reduced) / costs.single_copy;
    time += work.moves * costs.single_copy_call * sharing;
  }
  return time + moving * bytes * sharing;
}

}  // namespace tessera
