// Rings, chains and trees follow the order that they are given.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "algorithms/hosts.h"
#include "algorithms/support.h"

namespace tessera {
namespace {

const std::vector<int> kOrder = {3, 0, 5, 1, 4, 2};

AlgorithmParams ordered(Collective collective, std::vector<int> order = kOrder) {
  AlgorithmParams params;
  params.ranks = static_cast<int>(order.size());
  params.root = has_root(collective) ? 1 : -1;
  params.order = std::move(order);
  return params;
}

Plan plan_of(Collective collective, std::string_view name, const AlgorithmParams& params) {
  return find_algorithm(collective, name, Reach::kStaged)->build(params);
}

// Pairs of different ranks between which chunks pass.
std::set<std::pair<int, int>> pairs(const Plan& plan) {
  std::set<std::pair<int, int>> found;
  for (int rank = 0; rank < plan.ranks; ++rank)
    for (const Lane& lane : plan.programs[rank].lanes)
      for (const Step& step : lane.steps)
        for (const Ref& dst : step.dsts)
          if (dst.rank != rank) found.emplace(rank, dst.rank);
  return found;
}

TEST(Order, ARingSendsFromEachRankToTheNextInItsOrderOnly) {
  std::set<std::pair<int, int>> around;
  for (size_t place = 0; place < kOrder.size(); ++place)
    around.emplace(kOrder[place], kOrder[(place + 1) % kOrder.size()]);
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    EXPECT_EQ(pairs(plan_of(collective, "ring", ordered(collective))), around)
        << to_string(collective);
}

TEST(Order, AChainIsTheRingCutAtItsRoot) {
  const std::set<std::pair<int, int>> from_root = {{1, 4}, {4, 2}, {2, 3}, {3, 0}, {0, 5}};
  EXPECT_EQ(pairs(plan_of(Collective::kBroadcast, "ring", ordered(Collective::kBroadcast))),
            from_root);
  const std::set<std::pair<int, int>> to_root = {{4, 2}, {2, 3}, {3, 0}, {0, 5}, {5, 1}};
  EXPECT_EQ(pairs(plan_of(Collective::kReduce, "ring", ordered(Collective::kReduce))), to_root);
}

TEST(Order, ATreeCountsItsPlacesFromTheRoot) {
  const std::set<std::pair<int, int>> down = {{1, 4}, {1, 2}, {4, 3}, {4, 0}, {2, 5}};
  EXPECT_EQ(pairs(plan_of(Collective::kBroadcast, "tree", ordered(Collective::kBroadcast))), down);
}

// Of ranks dealt out to two NUMA nodes in turn, what crosses from one to the other.
TEST(Order, RanksInTheOrderOfTheirNodesCrossBetweenThemLessOften) {
  const std::vector<int> by_number = {0, 1, 2, 3, 4, 5, 6, 7}, by_node = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto crossings = [](std::string_view name, const std::vector<int>& order) {
    const Plan plan = plan_of(Collective::kAllReduce, name, ordered(Collective::kAllReduce, order));
    const auto all = pairs(plan);
    return std::count_if(all.begin(), all.end(),
                         [](const auto& pair) { return pair.first % 2 != pair.second % 2; });
  };
  EXPECT_EQ(crossings("ring", by_number), 8);
  EXPECT_EQ(crossings("ring", by_node), 2);
  EXPECT_LT(crossings("double-tree", by_node), crossings("double-tree", by_number));
}

TEST(Order, HostsAreNumberedAsItMeetsThem) {
  AlgorithmParams params = ordered(Collective::kAllReduce, {4, 5, 0, 1, 2, 3});
  params.host_of = {0, 0, 1, 1, 2, 2};
  EXPECT_EQ(hosts_of(params).of, (std::vector<int>{1, 1, 2, 2, 0, 0}));
  const std::vector<int> next = {1, 2, 0};  // by host as numbered by its ranks
  for (const auto& [from, to] :
       pairs(plan_of(Collective::kAllGather, "hierarchical-ring", params))) {
    if (from / 2 == to / 2) continue;
    EXPECT_EQ(to / 2, next[static_cast<size_t>(from / 2)]);
  }
}

TEST(Order, WhatASimulationBuildsForRankZeroOnlyIgnoresIt) {
  AlgorithmParams params = ordered(Collective::kAllReduce);
  params.first_only = true;
  const Plan first = plan_of(Collective::kAllReduce, "ring", params);
  params.order.clear();
  EXPECT_EQ(pairs(first), pairs(plan_of(Collective::kAllReduce, "ring", params)));
  EXPECT_EQ(pairs(first), (std::set<std::pair<int, int>>{{0, 1}}));
}

}  // namespace
}  // namespace tessera
