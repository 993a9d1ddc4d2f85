// Whether every counter is needed: a plan without its waits and signals must not verify.
//
// Some algorithms are left out. Where one rank sends several puts in a row to another (bruck
// all-to-all, binomial gather and scatter), the wait for the last covers the others, but a flag for
// each put is what the low-latency shape asks for. In the double tree and in pairwise one credit
// can follow from the others, but not all of them can be dropped. Both is so in the
// hierarchical ones where one rank sends another several chunks or blocks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/support.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

// Removes all waits for a counter of `rank` and all signals to it.
void remove_counter(Plan& plan, int rank, int counter) {
  for (int r = 0; r < plan.ranks; ++r) {
    for (Lane& lane : plan.programs[r].lanes) {
      for (Step& step : lane.steps) {
        if (r == rank) {
          std::erase_if(step.waits, [&](const Wait& wait) { return wait.counter == counter; });
        }
        std::erase_if(step.signals, [&](const Signal& signal) {
          return signal.rank == rank && signal.counter == counter;
        });
      }
    }
  }
}

// Counters without which the plan still verifies.
int superfluous_counters(const Plan& plan) {
  int count = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const int counters = static_cast<int>(plan.programs[rank].counters.size());
    for (int counter = 0; counter < counters; ++counter) {
      Plan less = plan;
      remove_counter(less, rank, counter);
      count += verify(std::move(less)).ok() ? 1 : 0;
    }
  }
  return count;
}

bool has_no_covered_counters(const Algorithm& algorithm) {
  if (algorithm.name == "bruck") return algorithm.collective != Collective::kAllToAll;
  if (algorithm.name == "binomial") {
    return algorithm.collective != Collective::kGather &&
           algorithm.collective != Collective::kScatter;
  }
  if (algorithm.name == "hierarchical-hop") return algorithm.collective != Collective::kAllToAll;
  if (algorithm.name == "hierarchical") return algorithm.collective == Collective::kBarrier;
  return algorithm.name != "double-tree" && algorithm.name != "pairwise" &&
         algorithm.name != "hierarchical-tree" && algorithm.name != "hierarchical-ring";
}

class Needs : public testing::TestWithParam<Algorithm> {};

TEST_P(Needs, EachOfItsCountersWithTwoCopiesOfScratch) {
  const Algorithm& algorithm = GetParam();
  test::for_each_shape(algorithm, {2, 3, 4, 5, 8}, [&](AlgorithmParams params) {
    params.chunks = 2;
    EXPECT_EQ(superfluous_counters(algorithm.build(params)), 0) << test::label(algorithm, params);
  });
}

TEST(NeedsCheck, NoticesASuperfluousCounter) {
  AlgorithmParams params;
  params.ranks = 3;
  params.scratch_depth = 1;  // with credits
  Plan plan = find_algorithm(Collective::kAllReduce, "one-hop", Reach::kStaged)->build(params);
  ASSERT_EQ(superfluous_counters(plan), 0);
  plan.scratch_depth = 2;  // the credits of the pass before are stricter than needed
  EXPECT_GT(superfluous_counters(plan), 0);
}

INSTANTIATE_TEST_SUITE_P(Registry, Needs,
                         testing::ValuesIn(test::all_algorithms(has_no_covered_counters)),
                         [](const auto& info) { return test::test_name(info.param); });

}  // namespace
}  // namespace tessera
