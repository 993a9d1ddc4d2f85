#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "algorithms/support.h"

namespace tessera {
namespace {

TEST(Registry, EveryCollectiveHasAnAlgorithmForEveryRankCount) {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (int ranks = 1; ranks <= 64; ++ranks) {
      bool staged = false, direct = false;
      for (const Algorithm& algorithm : algorithms(collective)) {
        (algorithm.reach == Reach::kStaged ? staged : direct) |= algorithm.supports(ranks);
      }
      const bool needs = collective != Collective::kSendRecv || ranks == 2;
      EXPECT_EQ(staged, needs) << to_string(collective) << " " << ranks;
      EXPECT_EQ(direct, needs && collective != Collective::kBarrier)
          << to_string(collective) << " " << ranks;
    }
  }
}

TEST(Registry, FindsEachAlgorithmByItsNameAndReachAndNoOther) {
  for (const Algorithm& algorithm : test::all_algorithms()) {
    const Algorithm* found = find_algorithm(algorithm.collective, algorithm.name, algorithm.reach);
    ASSERT_NE(found, nullptr) << algorithm.name;
    EXPECT_EQ(found->build, algorithm.build) << algorithm.name;
  }
  EXPECT_EQ(find_algorithm(Collective::kAllReduce, "ring", Reach::kDirect), nullptr);
  EXPECT_EQ(find_algorithm(Collective::kAllReduce, "pairwise", Reach::kStaged), nullptr);
}

TEST(Registry, NamesAreUniqueWithinACollectiveAndReach) {
  std::set<std::pair<std::string, std::pair<int, int>>> seen;
  for (const Algorithm& algorithm : test::all_algorithms()) {
    EXPECT_TRUE(
        seen.insert({std::string(algorithm.name),
                     {static_cast<int>(algorithm.collective), static_cast<int>(algorithm.reach)}})
            .second)
        << algorithm.name;
  }
}

TEST(Registry, EveryEntryDescribesThePlanItBuilds) {
  for (const Algorithm& algorithm : test::all_algorithms()) {
    EXPECT_FALSE(algorithm.cost.empty()) << algorithm.name;
    test::for_each_shape(algorithm, {1, 2, 4}, [&](AlgorithmParams params) {
      params.scratch_depth = 3;
      const Plan plan = algorithm.build(params);
      EXPECT_EQ(plan.name, algorithm.name);
      EXPECT_EQ(plan.collective, algorithm.collective);
      EXPECT_EQ(plan.ranks, params.ranks);
      EXPECT_EQ(plan.root, params.root);
      const bool scratch = plan.programs.front().scratch_chunks != 0;
      EXPECT_EQ(plan.scratch_depth, scratch ? 3 : plan.scratch_depth)
          << test::label(algorithm, params);
    });
  }
}

}  // namespace
}  // namespace tessera
