// Who touches what: staged plans keep to scratch at peers, direct plans need none, and low-latency
// plans have the shape that lets a cache line carry its own flag.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/support.h"

namespace tessera {
namespace {

const std::vector<int> kRankCounts = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33};

template <class Visit>
void for_each_step(const Plan& plan, Visit visit) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<Lane>& lanes = plan.programs[rank].lanes;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      for (size_t s = 0; s < lanes[lane].steps.size(); ++s) {
        visit(rank, lane, s, lanes[lane].steps[s]);
      }
    }
  }
}

bool touches_user_buffer_of_peer(const Plan& plan) {
  bool touches = false;
  for_each_step(plan, [&](int rank, size_t, size_t, const Step& step) {
    for (const std::vector<Ref>* refs : {&step.dsts, &step.srcs}) {
      for (const Ref& ref : *refs) {
        touches = touches || (ref.rank != rank && ref.buffer != Buffer::kScratch);
      }
    }
  });
  return touches;
}

// Checks the low-latency shape of a plan; returns the first fault, or nothing.
class LowLatencyShape {
 public:
  explicit LowLatencyShape(const Plan& plan) : plan_(plan) {}

  std::string fault() {
    for_each_step(plan_, [&](int rank, size_t, size_t, const Step& step) { note(rank, step); });
    for_each_step(plan_, [&](int rank, size_t, size_t, const Step& step) { puts(rank, step); });
    for_each_step(plan_, [&](int rank, size_t lane, size_t s, const Step& step) {
      reads(rank, lane, s, step);
    });
    for (const auto& [counter, awaited] : put_awaited_) {
      if (!awaited) fail("a put whose counter no step that reads the slot waits for");
    }
    return fault_;
  }

 private:
  using Counter = std::pair<int, int>;  // owner, counter
  using Chunk = std::pair<int, int>;    // owner, scratch chunk

  void fail(const std::string& text) {
    if (fault_.empty()) fault_ = text;
  }

  void note(int rank, const Step& step) {
    for (const Signal& signal : step.signals) ++signals_[{signal.rank, signal.counter}];
    for (const Wait& wait : step.waits) {
      if (wait.lag == 0) arrivals_[{rank, wait.counter}] = true;
      if (wait.lag != 0 && wait.lag != static_cast<uint32_t>(plan_.scratch_depth)) {
        fail("a credit that does not lag by the depth of scratch");
      }
    }
  }

  // Each slot is written by one put of a peer, with one signal of its own.
  void puts(int rank, const Step& step) {
    for (const Ref& dst : step.dsts) {
      if (dst.buffer != Buffer::kScratch) continue;
      if (dst.rank == rank) return fail("a local step writes scratch");
      std::vector<Counter> own;
      for (const Signal& signal : step.signals) {
        const Counter counter{signal.rank, signal.counter};
        if (signal.rank == dst.rank && arrivals_.count(counter) != 0) own.push_back(counter);
      }
      if (own.size() != 1) return fail("a put without one counter of its own");
      if (signals_[own[0]] != 1) return fail("two puts share a counter");
      put_awaited_[own[0]] = false;
      for (int j = 0; j < step.chunks; ++j) {
        if (!writer_.emplace(Chunk{dst.rank, dst.chunk + j}, own[0]).second) {
          return fail("a slot is written twice");
        }
      }
    }
  }

  // Each slot is read by its owner, once, by or after the step that waits for the put.
  void reads(int rank, size_t lane, size_t s, const Step& step) {
    std::map<Counter, bool> reads_of;
    for (const Ref& src : step.srcs) {
      if (src.buffer != Buffer::kScratch) continue;
      if (src.rank != rank) return fail("a peer reads a slot");
      for (int j = 0; j < step.chunks; ++j) {
        const Chunk chunk{rank, src.chunk + j};
        if (writer_.count(chunk) == 0) return fail("a slot is read that no put fills");
        if (!read_.emplace(chunk, true).second) return fail("a slot is read twice");
        reads_of[writer_[chunk]] = true;
      }
    }
    for (const Wait& wait : step.waits) {
      const Counter counter{rank, wait.counter};
      if (wait.lag != 0) continue;
      if (reads_of.count(counter) == 0) return fail("a step waits for a put it does not read");
      put_awaited_[counter] = true;
      awaited_in_[counter] = {lane, s};
    }
    for (const auto& [counter, unused] : reads_of) {
      const auto waited = awaited_in_.find(counter);
      if (waited == awaited_in_.end() || waited->second.first != lane) {
        return fail("a slot is read before its put was waited for");
      }
    }
  }

  const Plan& plan_;
  std::string fault_;
  std::map<Counter, int> signals_;
  std::map<Counter, bool> arrivals_;     // waited for within the pass
  std::map<Counter, bool> put_awaited_;  // counters of puts
  std::map<Counter, std::pair<size_t, size_t>> awaited_in_;
  std::map<Chunk, Counter> writer_;
  std::map<Chunk, bool> read_;
};

class EveryAlgorithmReach : public testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithmReach, StagedPlansTouchOnlyScratchOfPeersAndDirectPlansUseNone) {
  const Algorithm& algorithm = GetParam();
  test::for_each_shape(algorithm, kRankCounts, [&](const AlgorithmParams& params) {
    const Plan plan = algorithm.build(params);
    const bool moves = params.ranks > 1 && algorithm.collective != Collective::kBarrier;
    bool scratch = false;
    for (const RankProgram& program : plan.programs) scratch = scratch || program.scratch_chunks;
    if (algorithm.reach == Reach::kDirect) {
      EXPECT_FALSE(scratch) << test::label(algorithm, params);
      EXPECT_EQ(touches_user_buffer_of_peer(plan), moves) << test::label(algorithm, params);
    } else {
      EXPECT_EQ(scratch, moves) << test::label(algorithm, params);
      EXPECT_FALSE(touches_user_buffer_of_peer(plan)) << test::label(algorithm, params);
    }
  });
}

class LowLatencyAlgorithm : public testing::TestWithParam<Algorithm> {};

TEST_P(LowLatencyAlgorithm, LowLatencyPlansFillEachSlotByOnePutThatItsReaderAwaits) {
  const Algorithm& algorithm = GetParam();
  test::for_each_shape(algorithm, kRankCounts, [&](AlgorithmParams params) {
    for (const int depth : {1, 2, 3}) {
      params.scratch_depth = depth;
      const Plan plan = algorithm.build(params);
      EXPECT_EQ(LowLatencyShape(plan).fault(), "") << test::label(algorithm, params);
    }
  });
}

class DirectAlgorithm : public testing::TestWithParam<Algorithm> {};

// True if another rank's step touches the user buffers of `owner`.
bool visited(const Plan& plan, int owner) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (rank == owner) continue;
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (const Step& step : lane.steps) {
        for (const std::vector<Ref>* refs : {&step.dsts, &step.srcs}) {
          for (const Ref& ref : *refs) {
            if (ref.rank == owner && ref.buffer != Buffer::kScratch) return true;
          }
        }
      }
    }
  }
  return false;
}

TEST_P(DirectAlgorithm, RanksThatAreVisitedSayThatTheyHaveEnteredInTheirFirstStep) {
  const Algorithm& algorithm = GetParam();
  test::for_each_shape(algorithm, {2, 3, 8}, [&](const AlgorithmParams& params) {
    const Plan plan = algorithm.build(params);
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (!visited(plan, rank)) continue;
      const Step& first = plan.programs[rank].lanes.at(0).steps.front();
      EXPECT_EQ(first.op, Op::kSync) << test::label(algorithm, params);
      EXPECT_TRUE(first.waits.empty()) << test::label(algorithm, params);
      EXPECT_FALSE(first.signals.empty()) << test::label(algorithm, params);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithmReach, testing::ValuesIn(test::all_algorithms()),
                         [](const auto& info) { return test::test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(Registry, LowLatencyAlgorithm,
                         testing::ValuesIn(test::all_algorithms([](const Algorithm& a) {
                           return a.low_latency;
                         })),
                         [](const auto& info) { return test::test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(Registry, DirectAlgorithm,
                         testing::ValuesIn(test::all_algorithms([](const Algorithm& a) {
                           return a.reach == Reach::kDirect;
                         })),
                         [](const auto& info) { return test::test_name(info.param); });

TEST(LowLatencyShapeCheck, NoticesSlotsThatAreFilledTwice) {
  AlgorithmParams params;
  params.ranks = 8;
  const Plan plan =
      find_algorithm(Collective::kAllToAll, "pairwise", Reach::kStaged)->build(params);
  EXPECT_NE(LowLatencyShape(plan).fault(), "");
}

TEST(LowLatencyShapeCheck, NoticesAReadWithoutItsWait) {
  AlgorithmParams params;
  params.ranks = 4;
  Plan plan = find_algorithm(Collective::kAllReduce, "one-hop", Reach::kStaged)->build(params);
  plan.programs[2].lanes[0].steps.back().waits.pop_back();
  EXPECT_NE(LowLatencyShape(plan).fault(), "");
}

}  // namespace
}  // namespace tessera
