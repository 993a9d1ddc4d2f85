// Plans for ranks on several hosts: they verify for any layout, cross the boundaries between hosts no
// more often than they must, and load hosts and ranks alike.
#include "algorithms/hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/support.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

// Ranks numbered host by host, or dealt out in turn.
std::vector<int> layout_of(const std::vector<int>& sizes, bool in_turn) {
  std::vector<int> left = sizes, host_of;
  const int n = std::accumulate(sizes.begin(), sizes.end(), 0);
  for (size_t host = 0; static_cast<int>(host_of.size()) < n;) {
    if (left[host] > 0) {
      host_of.push_back(static_cast<int>(host));
      --left[host];
    }
    if (in_turn || left[host] == 0) host = (host + 1) % sizes.size();
  }
  return host_of;
}

AlgorithmParams params_for(Collective collective, std::vector<int> host_of) {
  AlgorithmParams params;
  params.ranks = static_cast<int>(host_of.size());
  params.root = has_root(collective) ? params.ranks / 2 : -1;
  params.host_of = std::move(host_of);
  return params;
}

Plan plan_of(Collective collective, std::string_view name, std::vector<int> host_of) {
  const AlgorithmParams params = params_for(collective, std::move(host_of));
  return find_algorithm(collective, name, Reach::kStaged)->build(params);
}

// All lists of 2 to 4 sizes from 1 to 4, up to their order.
std::vector<std::vector<int>> small_hosts() {
  std::vector<std::vector<int>> lists;
  for (int a = 1; a <= 4; ++a) {
    for (int b = a; b <= 4; ++b) {
      lists.push_back({a, b});
      for (int c = b; c <= 4; ++c) {
        lists.push_back({b, a, c});
        for (int d = c; d <= 4; ++d) lists.push_back({c, a, d, b});
      }
    }
  }
  return lists;
}

void expect_verifies(const Algorithm& algorithm, const AlgorithmParams& params) {
  const Result<VerifiedPlan> result = verify(algorithm.build(params));
  EXPECT_TRUE(result.ok()) << test::label(algorithm, params) << ": " << result.status().message();
}

class AcrossHosts : public testing::TestWithParam<Algorithm> {};

TEST_P(AcrossHosts, VerifiesForTwoToFourHostsOfOneToFourRanksInAnyNumbering) {
  for (const std::vector<int>& sizes : small_hosts()) {
    for (const bool in_turn : {false, true})
      expect_verifies(GetParam(), params_for(GetParam().collective, layout_of(sizes, in_turn)));
  }
}

TEST_P(AcrossHosts, VerifiesForAnyLayoutRootAndDepth) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const int n = 2 + static_cast<int>(random() % (round % 10 == 0 ? 63 : 19));
    const int hosts = 2 + static_cast<int>(random() % 7);
    std::vector<int> host_of(n);
    for (int& host : host_of) host = static_cast<int>(random() % hosts) * 1000 - 7;
    if (count_hosts(host_of) < 2) host_of.back() = 5;
    AlgorithmParams params = params_for(GetParam().collective, std::move(host_of));
    if (params.root >= 0) params.root = static_cast<int>(random() % n);
    params.scratch_depth = 1 + static_cast<int>(random() % 4);
    expect_verifies(GetParam(), params);
  }
}

// What passes from one host to another in one pass.
struct Traffic {
  int puts = 0;  // with data: each operand of a step counts
  int chunks = 0;
  int signals = 0;
  bool operator==(const Traffic&) const = default;
};

struct Crossings {
  std::map<std::pair<int, int>, Traffic> between;  // [from, to]
  std::vector<int> sent, taken;                    // chunks, by host
  std::vector<int> sent_by;                        // chunks, by rank
  Traffic all;
  int gets = 0;
};

Crossings crossings(const Plan& plan, const Hosts& hosts) {
  Crossings found;
  found.sent.resize(hosts.count());
  found.taken.resize(hosts.count());
  found.sent_by.resize(plan.ranks);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const int from = hosts.of[rank];
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (const Step& step : lane.steps) {
        for (const Ref& src : step.srcs) found.gets += hosts.of[src.rank] != from ? 1 : 0;
        for (const Signal& signal : step.signals) {
          if (hosts.of[signal.rank] == from) continue;
          ++found.between[{from, hosts.of[signal.rank]}].signals;
          ++found.all.signals;
        }
        for (const Ref& dst : step.dsts) {
          const int to = hosts.of[dst.rank];
          if (to == from) continue;
          for (Traffic* traffic : {&found.between[{from, to}], &found.all}) {
            ++traffic->puts;
            traffic->chunks += step.chunks;
          }
          found.sent[from] += step.chunks;
          found.taken[to] += step.chunks;
          found.sent_by[rank] += step.chunks;
        }
      }
    }
  }
  return found;
}

// The fewest chunks that must pass between hosts, and what plans of the family send.
int fewest_chunks(const Plan& plan, const Hosts& hosts) {
  const int h = hosts.count(), n = plan.ranks;
  switch (plan.collective) {
    case Collective::kAllReduce:  // on the way up and on the way down
      return 2 * (h - 1) * plan.chunks_per_block;
    case Collective::kReduce:
    case Collective::kBroadcast:
      return (h - 1) * plan.chunks_per_block;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return (h - 1) * n;
    case Collective::kGather:
    case Collective::kScatter:
      return n - hosts.size(hosts.of[plan.root]);
    case Collective::kAllToAll: {
      int pairs = n * n;
      for (int host = 0; host < h; ++host) pairs -= hosts.size(host) * hosts.size(host);
      return pairs;
    }
    default:
      return 0;
  }
}

TEST_P(AcrossHosts, EachChunkCrossesToEachHostOnceAndNothingIsFetched) {
  const Algorithm& algorithm = GetParam();
  for (const std::vector<int>& sizes : small_hosts()) {
    for (const bool in_turn : {false, true}) {
      const AlgorithmParams params = params_for(algorithm.collective, layout_of(sizes, in_turn));
      const Hosts hosts = hosts_of(params);
      const Plan plan = algorithm.build(params);
      const Crossings found = crossings(plan, hosts);
      // Leaders that exchange whole sums give up bytes for a hop.
      const bool one_hop_sums =
          algorithm.name == "hierarchical-hop" && algorithm.collective == Collective::kAllReduce;
      const int expected =
          one_hop_sums ? hosts.count() * (hosts.count() - 1) : fewest_chunks(plan, hosts);
      EXPECT_EQ(found.all.chunks, expected) << test::label(algorithm, params);
      EXPECT_EQ(found.gets, 0) << test::label(algorithm, params);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, AcrossHosts,
                         testing::ValuesIn(test::all_algorithms([](const Algorithm& a) {
                           return a.across_hosts;
                         })),
                         [](const auto& info) { return test::test_name(info.param); });

TEST(AcrossHosts, EveryAllReduceInBulkLoadsAllHostsAlikeHoweverManyRanksTheyHave) {
  for (const char* name : {"hierarchical", "hierarchical-ring", "hierarchical-tree"}) {
    for (const std::vector<int>& sizes : small_hosts()) {
      const std::vector<int> host_of = layout_of(sizes, true);
      const Plan plan = plan_of(Collective::kAllReduce, name, host_of);
      const Hosts hosts = hosts_of(params_for(Collective::kAllReduce, host_of));
      const Crossings found = crossings(plan, hosts);
      const int each = 2 * (hosts.count() - 1) * plan.chunks_per_block / hosts.count();
      EXPECT_EQ(found.sent, std::vector<int>(hosts.count(), each)) << name;
      EXPECT_EQ(found.taken, std::vector<int>(hosts.count(), each)) << name;
    }
  }
}

TEST(AcrossHosts, RanksOfEqualHostsSendEquallyMuchAndOnlyToTheirOwnRail) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    for (const char* name : {"hierarchical", "hierarchical-ring"}) {
      const std::vector<int> host_of = layout_of({4, 4, 4}, false);
      const Plan plan = plan_of(collective, name, host_of);
      const std::vector<int> sent =
          crossings(plan, hosts_of(params_for(collective, host_of))).sent_by;
      EXPECT_EQ(sent, std::vector<int>(12, sent.front())) << name << to_string(collective);
      for (int rank = 0; rank < plan.ranks; ++rank) {
        for (const Lane& lane : plan.programs[rank].lanes) {
          for (const Step& step : lane.steps) {
            for (const Ref& dst : step.dsts) {
              if (host_of[dst.rank] != host_of[rank]) {
                EXPECT_EQ(dst.rank % 4, rank % 4) << name;
              }
            }
          }
        }
      }
    }
  }
}

TEST(AcrossHosts, ARingOfHostsSendsToTheNextHostOnly) {
  const std::vector<int> host_of = layout_of({2, 1, 3, 2}, false);
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    const Plan plan = plan_of(collective, "hierarchical-ring", host_of);
    for (const auto& [hosts, traffic] :
         crossings(plan, hosts_of(params_for(collective, host_of))).between) {
      if (traffic.chunks > 0) {
        EXPECT_EQ(hosts.second, (hosts.first + 1) % 4) << to_string(collective);
      }
    }
  }
}

TEST(AcrossHosts, OneHopSendsOneMessageBetweenHostsThatAreNumberedOneAfterTheOther) {
  const std::vector<int> host_of = layout_of({3, 1, 4}, false);
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    const Plan plan = plan_of(collective, "hierarchical-hop", host_of);
    const Crossings found = crossings(plan, hosts_of(params_for(collective, host_of)));
    EXPECT_EQ(found.between.size(), 6u) << to_string(collective);
    for (const auto& [hosts, traffic] : found.between) {
      EXPECT_EQ(traffic.puts, 1) << to_string(collective);
      EXPECT_EQ(traffic.signals, 1) << "two copies of scratch need no credits";
    }
  }
}

TEST(AcrossHosts, AnAllToAllOfLeadersSendsTwoMessagesWhereADirectOneSendsOneForEachPairOfRanks) {
  const std::vector<int> host_of = layout_of({4, 4}, false);
  const Hosts hosts = hosts_of(params_for(Collective::kAllToAll, host_of));
  const Plan leaders = plan_of(Collective::kAllToAll, "hierarchical-hop", host_of);
  const Plan direct = plan_of(Collective::kAllToAll, "one-hop", host_of);
  EXPECT_EQ((crossings(leaders, hosts).between[{0, 1}]), (Traffic{2, 16, 2}));
  EXPECT_EQ((crossings(direct, hosts).between[{0, 1}]), (Traffic{16, 16, 16}));
}

TEST(AcrossHosts, ABarrierTellsOtherHostsAsOftenAsTheLogarithmOfTheirNumber) {
  const std::vector<int> host_of = layout_of({4, 2, 1, 3, 3}, true);
  const Plan plan = plan_of(Collective::kBarrier, "hierarchical", host_of);
  EXPECT_EQ(crossings(plan, hosts_of(params_for(Collective::kBarrier, host_of))).all.signals,
            5 * 3);
}

TEST(Hosts, AreNumberedByTheirFirstRanksWhateverTheyAreCalled) {
  AlgorithmParams params;
  params.ranks = 5;
  params.host_of = {70, 70, -1, 70, -1};
  const Hosts hosts = hosts_of(params);
  EXPECT_EQ(hosts.of, (std::vector<int>{0, 0, 1, 0, 1}));
  EXPECT_EQ(hosts.ranks, (std::vector<std::vector<int>>{{0, 1, 3}, {2, 4}}));
  EXPECT_EQ(hosts.runs(0).size(), 2u);
  EXPECT_EQ(hosts.on_rail(1, 3), 4);
  EXPECT_EQ(count_hosts(params.host_of), 2);
  EXPECT_EQ(count_hosts({}), 1);
}

TEST(Hosts, PlansForSeveralAreNotOfferedOnOne) {
  const Algorithm* algorithm =
      find_algorithm(Collective::kAllReduce, "hierarchical", Reach::kStaged);
  EXPECT_FALSE(algorithm->supports(8));
  EXPECT_TRUE(algorithm->supports(8, 2));
  EXPECT_TRUE(find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged)->supports(8, 2));
}

}  // namespace
}  // namespace tessera
