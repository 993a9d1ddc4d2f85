#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "algorithms/support.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

using test::for_each_shape;
using test::label;

class EveryAlgorithm : public testing::TestWithParam<Algorithm> {};

void expect_verifies(const Algorithm& algorithm, const AlgorithmParams& params) {
  const Result<VerifiedPlan> result = verify(algorithm.build(params));
  EXPECT_TRUE(result.ok()) << label(algorithm, params) << ": " << result.status().message();
}

TEST_P(EveryAlgorithm, VerifiesForEveryRankCountUpTo24AndEveryRootUpTo8Ranks) {
  std::vector<int> ranks;
  for (int n = 1; n <= 24; ++n) ranks.push_back(n);
  for_each_shape(GetParam(), ranks,
                 [](const AlgorithmParams& params) { expect_verifies(GetParam(), params); });
}

TEST_P(EveryAlgorithm, VerifiesForMoreRanksAroundPowersOfTwo) {
  for_each_shape(GetParam(), {31, 32, 33, 48, 63, 64},
                 [](const AlgorithmParams& params) { expect_verifies(GetParam(), params); });
}

TEST_P(EveryAlgorithm, VerifiesForEveryDepthOfScratch) {
  for_each_shape(GetParam(), {1, 2, 3, 4, 5, 8, 11, 17}, [](AlgorithmParams params) {
    for (const int depth : {1, 2, 3, 8}) {
      params.scratch_depth = depth;
      expect_verifies(GetParam(), params);
    }
  });
}

TEST_P(EveryAlgorithm, VerifiesForEveryNumberOfChunks) {
  for_each_shape(GetParam(), {1, 2, 3, 4, 7, 8, 13}, [](AlgorithmParams params) {
    for (const int chunks : {1, 3, 8}) {
      params.chunks = chunks;
      expect_verifies(GetParam(), params);
    }
  });
}

TEST_P(EveryAlgorithm, VerifiesForRanksInAnyOrder) {
  std::mt19937 random(11);
  for_each_shape(GetParam(), {2, 3, 4, 5, 8, 13, 16}, [&](AlgorithmParams params) {
    params.order.resize(static_cast<size_t>(params.ranks));
    std::iota(params.order.begin(), params.order.end(), 0);
    std::shuffle(params.order.begin(), params.order.end(), random);
    expect_verifies(GetParam(), params);
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, testing::ValuesIn(test::all_algorithms()),
                         [](const auto& info) { return test::test_name(info.param); });

}  // namespace
}  // namespace tessera
