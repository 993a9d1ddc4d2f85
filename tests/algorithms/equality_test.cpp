// Whether all ranks of an all-reduce compute the same sum in the same order: floating-point results
// are then bitwise equal. Sums are compared as trees, up to commutation.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/support.h"
#include "algorithms/walk.h"

namespace tessera {
namespace {

// Trees of sums; equal trees have equal numbers.
class Sums {
 public:
  int leaf(int rank, int chunk) { return number({-1 - rank, chunk}); }
  int add(int a, int b) { return number({std::min(a, b), std::max(a, b)}); }

 private:
  int number(std::pair<int, int> tree) {
    return numbers_.emplace(tree, static_cast<int>(numbers_.size())).first->second;
  }
  std::map<std::pair<int, int>, int> numbers_;
};

using Location = std::pair<int, std::pair<int, int>>;  // rank, buffer, chunk

// The sum in every chunk of every output, [rank][chunk]; empty if the plan gets stuck.
std::vector<std::vector<int>> outputs(const Plan& plan) {
  Sums sums;
  std::map<Location, int> memory;
  const auto read = [&](const Ref& ref, int offset) {
    if (ref.buffer == Buffer::kInput) return sums.leaf(ref.rank, ref.chunk + offset);
    return memory.at({ref.rank, {static_cast<int>(ref.buffer), ref.chunk + offset}});
  };
  const bool finished = test::walk(plan, [&](int, int, const Step& step) {
    for (int j = 0; step.op != Op::kSync && j < step.chunks; ++j) {
      int sum = read(step.srcs[0], j);
      for (size_t i = 1; i < step.srcs.size(); ++i) sum = sums.add(sum, read(step.srcs[i], j));
      for (const Ref& dst : step.dsts) {
        memory[{dst.rank, {static_cast<int>(dst.buffer), dst.chunk + j}}] = sum;
      }
    }
  });
  std::vector<std::vector<int>> result;
  for (int rank = 0; finished && rank < plan.ranks; ++rank) {
    std::vector<int> chunks;
    for (int c = 0; c < plan.chunks_per_block; ++c) {
      chunks.push_back(memory.at({rank, {static_cast<int>(Buffer::kOutput), c}}));
    }
    result.push_back(std::move(chunks));
  }
  return result;
}

bool all_equal(const std::vector<std::vector<int>>& results) {
  return !results.empty() && std::all_of(results.begin(), results.end(),
                                         [&](const auto& r) { return r == results.front(); });
}

TEST(AllReduce, EveryAlgorithmSumsInTheSameOrderOnAllRanks) {
  for (const Algorithm& algorithm : algorithms(Collective::kAllReduce)) {
    test::for_each_shape(algorithm, {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33},
                         [&](AlgorithmParams params) {
                           params.chunks = 3;
                           EXPECT_TRUE(all_equal(outputs(algorithm.build(params))))
                               << test::label(algorithm, params);
                         });
  }
}

TEST(AllReduce, TheComparisonNoticesASumInAnotherOrder) {
  AlgorithmParams params;
  params.ranks = 3;
  Plan plan = find_algorithm(Collective::kAllReduce, "one-hop", Reach::kStaged)->build(params);
  ASSERT_TRUE(all_equal(outputs(plan)));
  std::vector<Ref>& srcs = plan.programs[1].lanes[0].steps.back().srcs;
  ASSERT_EQ(srcs.size(), 3u);
  std::swap(srcs[0], srcs[1]);
  EXPECT_TRUE(all_equal(outputs(plan))) << "a + b and b + a are bitwise equal";
  std::swap(srcs[0], srcs[2]);
  EXPECT_FALSE(all_equal(outputs(plan)));
}

}  // namespace
}  // namespace tessera
