// What the cost lines claim: hops on the critical path, and bytes that a rank moves to or from
// peers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/support.h"
#include "algorithms/walk.h"
#include "plan/shape.h"

namespace tessera {
namespace {

int floor_log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
int ceil_log2(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

// The longest chain of signals to another rank in one pass, and the longest time when each step
// that puts takes one unit and all else is free.
struct CriticalPath {
  int hops = 0;
  int time = 0;
};

CriticalPath critical_path(const Plan& plan) {
  struct Moment {
    uint64_t value = 0;  // of the counter from then on
    CriticalPath at;
  };
  std::map<std::pair<int, int>, std::vector<Moment>> history;  // counter -> its growth
  std::map<std::pair<int, int>, CriticalPath> lanes;           // rank, lane
  CriticalPath longest;
  const bool finished = test::walk(plan, [&](int rank, int lane, const Step& step) {
    CriticalPath& now = lanes[{rank, lane}];
    for (const Wait& wait : step.waits) {
      if (wait.lag != 0) continue;
      for (const Moment& moment : history[{rank, wait.counter}]) {
        now.hops = std::max(now.hops, moment.at.hops);
        now.time = std::max(now.time, moment.at.time);
        if (moment.value >= wait.increment) break;
      }
    }
    const bool remote = std::any_of(step.dsts.begin(), step.dsts.end(),
                                    [&](const Ref& dst) { return dst.rank != rank; });
    if (remote) ++now.time;
    for (const Signal& signal : step.signals) {
      std::vector<Moment>& moments = history[{signal.rank, signal.counter}];
      const uint64_t before = moments.empty() ? 0 : moments.back().value;
      moments.push_back(
          {before + signal.increment, {now.hops + (signal.rank != rank ? 1 : 0), now.time}});
    }
    longest.hops = std::max(longest.hops, now.hops);
    longest.time = std::max(longest.time, now.time);
  });
  EXPECT_TRUE(finished);
  return longest;
}

// Chunks that the busiest rank's steps move to or from other ranks in one pass.
int chunks_moved(const Plan& plan) {
  int most = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    int moved = 0;
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (const Step& step : lane.steps) {
        for (const std::vector<Ref>* refs : {&step.dsts, &step.srcs}) {
          for (const Ref& ref : *refs) moved += ref.rank != rank ? step.chunks : 0;
        }
      }
    }
    most = std::max(most, moved);
  }
  return most;
}

struct Claim {
  std::string_view name;
  Collective collective;
  Reach reach;
  std::function<int(int n, int m)> expected;
};

void check(const std::vector<Claim>& claims, const std::vector<int>& rank_counts,
           const std::function<int(const Plan&)>& measure) {
  for (const Claim& claim : claims) {
    const Algorithm* algorithm = find_algorithm(claim.collective, claim.name, claim.reach);
    ASSERT_NE(algorithm, nullptr) << claim.name;
    test::for_each_shape(*algorithm, rank_counts, [&](AlgorithmParams params) {
      for (const int chunks : {1, 4}) {
        params.chunks = chunks;
        EXPECT_EQ(measure(algorithm->build(params)), claim.expected(params.ranks, chunks))
            << test::label(*algorithm, params);
      }
    });
  }
}

constexpr auto kStaged = Reach::kStaged;
constexpr auto kDirect = Reach::kDirect;
const std::vector<int> kRanks = {2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17};

int one(int, int) { return 1; }
int two(int, int) { return 2; }
int hops_of_log(int n, int) { return ceil_log2(n); }
int n_minus_1(int n, int) { return n - 1; }
int twice_n_minus_1(int n, int) { return 2 * (n - 1); }

TEST(CostLines, HopsOnTheCriticalPathAreAsClaimed) {
  const auto halving_doubling = [](int n, int) {
    return 2 * floor_log2(n) + (std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 2);
  };
  const auto depth = [](int n, int) { return floor_log2(n); };
  check({{"one-hop", Collective::kAllReduce, kStaged, one},
         {"one-hop", Collective::kReduce, kStaged, one},
         {"one-hop", Collective::kBroadcast, kStaged, one},
         {"one-hop", Collective::kAllGather, kStaged, one},
         {"one-hop", Collective::kReduceScatter, kStaged, one},
         {"one-hop", Collective::kAllToAll, kStaged, one},
         {"one-hop", Collective::kGather, kStaged, one},
         {"one-hop", Collective::kScatter, kStaged, one},
         {"recursive-doubling", Collective::kAllGather, kStaged, hops_of_log},
         {"recursive-halving", Collective::kReduceScatter, kStaged, hops_of_log},
         {"halving-doubling", Collective::kAllReduce, kStaged, halving_doubling},
         {"binomial", Collective::kBroadcast, kStaged, depth},
         {"binomial", Collective::kReduce, kStaged, depth},
         {"binomial", Collective::kGather, kStaged, depth},
         {"binomial", Collective::kScatter, kStaged, depth},
         {"bruck", Collective::kAllGather, kStaged, hops_of_log},
         {"pat", Collective::kAllGather, kStaged, hops_of_log},
         {"two-phase", Collective::kAllReduce, kStaged, two},
         {"ring", Collective::kAllReduce, kStaged, twice_n_minus_1},
         {"ring", Collective::kAllGather, kStaged, n_minus_1},
         {"ring", Collective::kReduceScatter, kStaged, n_minus_1},
         {"ring", Collective::kBroadcast, kStaged, n_minus_1},
         {"ring", Collective::kReduce, kStaged, n_minus_1},
         {"tree", Collective::kBroadcast, kStaged, depth},
         {"tree", Collective::kReduce, kStaged, depth},
         {"direct", Collective::kAllReduce, kDirect, two},
         {"direct", Collective::kReduce, kDirect, two},
         {"direct", Collective::kBroadcast, kDirect, two},
         {"direct", Collective::kAllGather, kDirect, two},
         {"direct", Collective::kReduceScatter, kDirect, two},
         {"direct", Collective::kAllToAll, kDirect, two},
         {"direct", Collective::kGather, kDirect, two},
         {"direct", Collective::kScatter, kDirect, two},
         {"direct", Collective::kSendRecv, kDirect, two},
         {"staged", Collective::kSendRecv, kStaged, one},
         {"dissemination", Collective::kBarrier, kStaged, hops_of_log}},
        kRanks, [](const Plan& plan) { return critical_path(plan).hops; });
}

TEST(CostLines, PipelinesOfMChunksTakeTheirDepthAndMMinusOneMoreUnits) {
  const auto chain = [](int n, int m) { return n - 2 + m; };
  const auto tree = [](int n, int m) { return floor_log2(n) - 1 + m; };
  check({{"ring", Collective::kBroadcast, kStaged, chain},
         {"ring", Collective::kReduce, kStaged, chain},
         {"tree", Collective::kBroadcast, kStaged, tree},
         {"tree", Collective::kReduce, kStaged, tree}},
        kRanks, [](const Plan& plan) { return critical_path(plan).time; });
}

TEST(CostLines, ABinomialBroadcastTakesOneUnitForEachRound) {
  check({{"binomial", Collective::kBroadcast, kStaged, hops_of_log}}, kRanks,
        [](const Plan& plan) { return critical_path(plan).time; });
}

TEST(CostLines, LogarithmicAlgorithmsStayWithinTheirHops) {
  for (const int n : kRanks) {
    AlgorithmParams params;
    params.ranks = n;
    const auto hops = [&](Collective collective, std::string_view name) {
      return critical_path(find_algorithm(collective, name, kStaged)->build(params)).hops;
    };
    const bool power = std::has_single_bit(static_cast<unsigned>(n));
    const int doubling = hops(Collective::kAllReduce, "recursive-doubling");
    if (power) {
      EXPECT_EQ(doubling, floor_log2(n)) << n;
    } else {
      EXPECT_LE(doubling, floor_log2(n) + 2) << n;
    }
    EXPECT_LE(hops(Collective::kAllToAll, "bruck"), ceil_log2(n)) << n;
    EXPECT_LE(hops(Collective::kAllReduce, "double-tree"), 2 * floor_log2(n)) << n;
    if (n <= 16) {
      EXPECT_LE(hops(Collective::kReduceScatter, "pat"), ceil_log2(n)) << n;
    }
  }
  for (const int n : {32, 48, 64, 128}) {
    AlgorithmParams params;
    params.ranks = n;
    const Plan plan = find_algorithm(Collective::kReduceScatter, "pat", kStaged)->build(params);
    EXPECT_LE(critical_path(plan).hops, std::max(ceil_log2(n), 5 * n / 16)) << n;
  }
}

TEST(CostLines, ChunksMovedByTheBusiestRankAreAsClaimed) {
  // In chunks: of 1/n of a block where the algorithm cuts blocks in n, else of 1/m or whole blocks.
  const auto m = [](int, int m) { return m; };
  const auto half = [](int, int) { return 1; };  // of 2 chunks
  check({{"one-hop", Collective::kAllReduce, kStaged, n_minus_1},
         {"one-hop", Collective::kReduceScatter, kStaged, n_minus_1},
         {"one-hop", Collective::kAllGather, kStaged, n_minus_1},
         {"one-hop", Collective::kAllToAll, kStaged, n_minus_1},
         {"one-hop", Collective::kBroadcast, kStaged, n_minus_1},
         {"one-hop", Collective::kScatter, kStaged, n_minus_1},
         {"one-hop", Collective::kReduce, kStaged, one},
         {"one-hop", Collective::kGather, kStaged, one},
         {"recursive-doubling", Collective::kAllGather, kStaged, n_minus_1},
         {"recursive-halving", Collective::kReduceScatter, kStaged, n_minus_1},
         {"bruck", Collective::kAllGather, kStaged, n_minus_1},
         {"pat", Collective::kAllGather, kStaged, n_minus_1},
         {"pat", Collective::kReduceScatter, kStaged, n_minus_1},
         {"ring", Collective::kAllGather, kStaged, n_minus_1},
         {"ring", Collective::kReduceScatter, kStaged, n_minus_1},
         {"pairwise", Collective::kAllToAll, kStaged, n_minus_1},
         {"two-phase", Collective::kAllReduce, kStaged, twice_n_minus_1},
         {"ring", Collective::kAllReduce, kStaged, twice_n_minus_1},
         {"ring", Collective::kBroadcast, kStaged, m},
         {"ring", Collective::kReduce, kStaged, m},
         {"binomial", Collective::kScatter, kStaged, n_minus_1},
         {"direct", Collective::kAllReduce, kDirect, twice_n_minus_1},
         {"direct", Collective::kReduce, kDirect, [](int n, int) { return n; }},
         {"direct", Collective::kReduceScatter, kDirect, n_minus_1},
         {"direct", Collective::kAllGather, kDirect, n_minus_1},
         {"direct", Collective::kAllToAll, kDirect, n_minus_1},
         {"direct", Collective::kBroadcast, kDirect, n_minus_1},
         {"direct", Collective::kGather, kDirect, n_minus_1},
         {"direct", Collective::kScatter, kDirect, n_minus_1},
         {"direct", Collective::kSendRecv, kDirect, half}},
        kRanks, chunks_moved);
}

TEST(CostLines, HalvingAndDoublingMovesTheOptimumForPowersOfTwo) {
  check({{"halving-doubling", Collective::kAllReduce, kStaged, twice_n_minus_1}}, {2, 4, 8, 16, 32},
        chunks_moved);
}

TEST(CostLines, TheTwoTreesTogetherSendAtMostTwiceTheDataFromAnyRank) {
  for (const int n : {2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 64}) {
    AlgorithmParams params;
    params.ranks = n;
    params.chunks = 4;
    const Plan plan = find_algorithm(Collective::kAllReduce, "double-tree", kStaged)->build(params);
    EXPECT_LE(chunks_moved(plan), 2 * plan.chunks_per_block) << n;
  }
}

TEST(CostLines, ScratchOfPatAndPairwiseStaysSmallForManyRanks) {
  for (const int n : {17, 33, 64, 200}) {
    AlgorithmParams params;
    params.ranks = n;
    const auto scratch = [&](Collective collective, std::string_view name) {
      return find_algorithm(collective, name, kStaged)->build(params).programs[0].scratch_chunks;
    };
    EXPECT_LE(scratch(Collective::kAllGather, "pat"), 8 * ceil_log2(n)) << n;
    EXPECT_LE(scratch(Collective::kReduceScatter, "pat"), 15 + ceil_log2(n) - 4) << n;
    EXPECT_EQ(scratch(Collective::kAllToAll, "pairwise"), 4) << n;
  }
}

}  // namespace
}  // namespace tessera
