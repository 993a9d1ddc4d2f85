// Any algorithm, simulated on a machine with a link between every two ranks, takes at least the
// time of its longest chain of dependencies, and at most that of all its steps one after the other.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/partition.h"
#include "simulator/simulate.h"
#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

constexpr double kGbs = 8;
constexpr double kLatency = 1.25;
constexpr size_t kCount = 3001;
constexpr double kRounding = 1e-3;  // us: many times what the grid of times can add up to

// The bounds, worked out from the plan itself. `chain`: every step starts when the steps before it
// have ended, and no link is ever shared.
class Bounds {
 public:
  Bounds(const Plan& plan, const RankCost& cost) : plan_(plan), cost_(cost) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      ends_.emplace_back();
      for (const Lane& lane : plan.programs[rank].lanes)
        ends_.back().emplace_back(lane.steps.size(), 0.0);
    }
    while (relax()) {
    }
  }

  double chain() const { return longest_; }
  double serial() const {
    double sum = 0;
    for_each_step([&](int rank, size_t, size_t, const Step& step) {
      sum += cost_.step_us + local_us(step, rank) + signals_us(step);
      const double each = bytes(step) / (kGbs * 1e3);
      sum += each * peers(step, rank) + 2 * request_us(step, rank);
      if (!step.signals.empty()) sum += kLatency;
    });
    return sum;
  }

 private:
  template <class Visit>
  void for_each_step(Visit visit) const {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const std::vector<Lane>& lanes = plan_.programs[rank].lanes;
      for (size_t lane = 0; lane < lanes.size(); ++lane) {
        for (size_t i = 0; i < lanes[lane].steps.size(); ++i)
          visit(rank, lane, i, lanes[lane].steps[i]);
      }
    }
  }

  double bytes(const Step& step) const {
    double sum = 0;
    for (int j = 0; j < step.chunks && step.op != Op::kSync; ++j) {
      const int c = (step.chunk + j) % plan_.chunks_per_block;
      sum += 4.0 * static_cast<double>(
                       chunk_range(kCount, plan_.chunks_per_block, c, chunk_unit(4)).length);
    }
    return sum;
  }
  static int peers(const Step& step, int rank) {
    const auto remote = [rank](const Ref& ref) { return ref.rank != rank; };
    return static_cast<int>(std::count_if(step.dsts.begin(), step.dsts.end(), remote) +
                            std::count_if(step.srcs.begin(), step.srcs.end(), remote));
  }
  double request_us(const Step& step, int rank) const {
    for (const Ref& src : step.srcs) {
      if (src.rank != rank && bytes(step) > 0) return kLatency;
    }
    return 0;
  }
  double local_us(const Step& step, int rank) const {
    if (step.op == Op::kSync) return 0;
    double us = static_cast<double>(step.srcs.size() - 1) * bytes(step) / (cost_.reduce_gbs * 1e3);
    for (const Ref& dst : step.dsts) {
      if (step.srcs.size() == 1 && step.srcs[0].rank == rank && dst.rank == rank &&
          !(dst == step.srcs[0]))
        us += bytes(step) / (cost_.copy_gbs * 1e3);
    }
    return us;
  }
  double signals_us(const Step& step) const {
    return static_cast<double>(step.signals.size()) * cost_.signal_us;
  }

  // When the counter has what the wait needs, as far as is known.
  double met(int rank, const Wait& wait) const {
    if (wait.lag > 0) return 0;
    std::vector<std::pair<double, uint32_t>> adds;
    for_each_step([&](int from, size_t lane, size_t i, const Step& step) {
      double at = ends_[from][lane][i] - signals_us(step);
      for (const Signal& signal : step.signals) {
        at += cost_.signal_us;
        if (signal.rank == rank && signal.counter == wait.counter)
          adds.emplace_back(at + (from == rank ? 0 : kLatency), signal.increment);
      }
    });
    std::sort(adds.begin(), adds.end());
    uint64_t sum = 0;
    for (const auto& [at, increment] : adds) {
      sum += increment;
      if (sum >= wait.increment) return at;
    }
    ADD_FAILURE() << "a wait that nobody meets";
    return 0;
  }

  bool relax() {
    bool changed = false;
    for_each_step([&](int rank, size_t lane, size_t i, const Step& step) {
      double start = i == 0 ? 0 : ends_[rank][lane][i - 1];
      for (const Wait& wait : step.waits) start = std::max(start, met(rank, wait));
      const double wire = peers(step, rank) > 0 ? bytes(step) / (kGbs * 1e3) : 0;
      const double end = start + cost_.step_us + local_us(step, rank) + wire +
                         2 * request_us(step, rank) + signals_us(step);
      if (end <= ends_[rank][lane][i]) return;
      ends_[rank][lane][i] = end;
      longest_ = std::max(longest_, end);
      changed = true;
    });
    return changed;
  }

  const Plan& plan_;
  const RankCost& cost_;
  std::vector<std::vector<std::vector<double>>> ends_;  // rank, lane, step
  double longest_ = 0;
};

class EveryAlgorithm : public testing::TestWithParam<Collective> {};

TEST_P(EveryAlgorithm, TakesNoLessThanItsLongestChainAndNoMoreThanAllItsSteps) {
  const Cost cost =
      run::costs({.step_us = 0.25, .signal_us = 0.125, .copy_gbs = 16, .reduce_gbs = 5});
  for (const Algorithm& algorithm : algorithms(GetParam())) {
    for (const int n : {1, 2, 3, 4, 6, 8}) {
      if (!algorithm.supports(n)) continue;
      const Plan plan = algorithm.build(run::params_for(algorithm.collective, n, 3));
      const machines::Machine machine = machines::full(n, kGbs, kLatency);
      const Result<Source> source = Source::of(plan);
      ASSERT_TRUE(source.ok()) << source.status().message();
      const Result<Outcome> outcome =
          simulate(source.value(), machine.routes(), {kCount, 4, 0}, cost);
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      const Bounds bounds(plan, cost.gpu);
      EXPECT_GE(outcome.value().total_us, bounds.chain() - kRounding)
          << algorithm.name << " of " << n << " ranks";
      EXPECT_LE(outcome.value().total_us, bounds.serial() + kRounding)
          << algorithm.name << " of " << n << " ranks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, EveryAlgorithm,
                         testing::Values(Collective::kAllReduce, Collective::kReduce,
                                         Collective::kBroadcast, Collective::kAllGather,
                                         Collective::kReduceScatter, Collective::kAllToAll,
                                         Collective::kGather, Collective::kScatter,
                                         Collective::kSendRecv, Collective::kBarrier));

}  // namespace
}  // namespace tessera::simulator
