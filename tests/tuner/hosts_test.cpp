// What the tuner makes of a communicator over several hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "tuner/rules.h"
#include "tuner/tuner.h"

namespace tessera {
namespace {

Site site_of(int hosts, int each) {
  Site site;
  site.ranks = hosts * each;
  site.cores = site.ranks;
  site.hosts = hosts;
  for (int rank = 0; rank < site.ranks; ++rank) site.host_of.push_back(rank / each);
  return site;
}

Tuner tuner_of(const Site& site, const Config& config = {},
               std::shared_ptr<const Profile> profile = nullptr) {
  return std::move(Tuner::create(site, config, std::move(profile))).value();
}

std::string chosen(Tuner& tuner, Collective collective, size_t bytes) {
  const Result<Candidate> candidate = tuner.chosen({collective, bytes, Access::kNone, true});
  return candidate.ok() ? describe(candidate.value()) : candidate.status().message();
}

bool any_across(const std::vector<Candidate>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Candidate& c) { return c.algorithm->across_hosts; });
}

PlanWork work(Collective collective, std::string_view name, const Site& site) {
  AlgorithmParams params;
  params.ranks = site.ranks;
  params.root = has_root(collective) ? 0 : -1;
  params.host_of = site.host_of;
  return work_of(find_algorithm(collective, name, Reach::kStaged)->build(params), site);
}

TEST(SeveralHosts, PlansForThemAreCandidatesThereOnlyAndComeFirst) {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::kSendRecv) continue;
    EXPECT_FALSE(any_across(candidates(collective, site_of(1, 8)))) << to_string(collective);
    const std::vector<Candidate> all = candidates(collective, site_of(2, 4));
    EXPECT_TRUE(all.front().algorithm->across_hosts) << to_string(collective);
    EXPECT_FALSE(all.back().algorithm->across_hosts) << to_string(collective);
  }
}

TEST(SeveralHosts, SmallCallsTakeOneHopBetweenLeadersAndLargeOnesTheExchange) {
  Tuner tuner = tuner_of(site_of(2, 4));
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 8), "low-latency hierarchical-hop");
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 16 << 20), "staged hierarchical");
  EXPECT_EQ(chosen(tuner, Collective::kAllGather, 8), "low-latency hierarchical-hop");
  EXPECT_EQ(chosen(tuner, Collective::kAllGather, 16 << 20), "staged hierarchical");
  EXPECT_EQ(chosen(tuner, Collective::kReduceScatter, 16 << 20), "staged hierarchical");
  EXPECT_EQ(chosen(tuner, Collective::kBroadcast, 16 << 20), "staged hierarchical-tree");
  EXPECT_EQ(chosen(tuner, Collective::kAllToAll, 8), "low-latency hierarchical-hop");
  EXPECT_EQ(chosen(tuner, Collective::kAllToAll, 16 << 20), "staged one-hop");
  EXPECT_EQ(chosen(tuner, Collective::kBarrier, 0), "staged hierarchical");
}

TEST(SeveralHosts, LargeAllReducesOfMoreThanTwoGoRound) {
  Tuner tuner = tuner_of(site_of(3, 4));
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 16 << 20), "staged hierarchical-ring");
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 256 << 10), "staged hierarchical");
  EXPECT_EQ(chosen(tuner, Collective::kAllGather, 16 << 20), "staged hierarchical");
}

TEST(SeveralHosts, ManyHostsMakeARing) {
  Tuner tuner = tuner_of(site_of(16, 2));
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 16 << 20), "staged hierarchical-ring");
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 256 << 10), "staged hierarchical-tree");
  EXPECT_EQ(chosen(tuner, Collective::kBroadcast, 16 << 20), "staged hierarchical-ring");
}

TEST(SeveralHosts, EveryDefaultCanRunThere) {
  for (const auto& [hosts, each] : {std::pair(2, 1), {2, 8}, {3, 2}, {12, 1}, {9, 4}}) {
    const Site site = site_of(hosts, each);
    for (int c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (collective == Collective::kSendRecv) continue;
      const std::vector<Candidate> all = candidates(collective, site);
      const auto listed = [&](const Candidate& candidate) {
        return std::find(all.begin(), all.end(), candidate) != all.end();
      };
      for (const size_t bytes : {size_t{4}, size_t{64} << 10, size_t{64} << 20}) {
        EXPECT_TRUE(listed(bulk_default({collective, bytes, Access::kNone, false}, site)))
            << to_string(collective);
      }
      if (collective != Collective::kBarrier) {
        EXPECT_TRUE(listed(eager_default(collective, site))) << to_string(collective);
      }
    }
  }
}

TEST(SeveralHosts, AWishForRingsIsGrantedByTheRingOfHosts) {
  Config config;
  config.nccl_algorithms = "ring";
  Tuner tuner = tuner_of(site_of(2, 4), config);
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 16 << 20), "staged hierarchical-ring");
}

TEST(SeveralHosts, AProfileOfOneHostDecidesNothing) {
  auto profile = std::make_shared<Profile>();
  profile->samples.push_back({Collective::kAllReduce, Protocol::kStaged, "ring", 8, 1 << 20, 1.0});
  Tuner tuner = tuner_of(site_of(2, 4), {}, profile);
  EXPECT_FALSE(tuner.estimator().knows(Collective::kAllReduce));
  EXPECT_EQ(chosen(tuner, Collective::kAllReduce, 1 << 20), "staged hierarchical");
}

TEST(SeveralHosts, TheModelCountsHopsMessagesAndBlocksBetweenHosts) {
  const Site site = site_of(4, 4);
  const PlanWork hop = work(Collective::kAllReduce, "hierarchical-hop", site);
  EXPECT_EQ(hop.crossings, 1);
  EXPECT_EQ(hop.hops, 2);
  EXPECT_EQ(hop.messages, 6);
  EXPECT_EQ(hop.carried, 3);
  const PlanWork exchange = work(Collective::kAllReduce, "hierarchical", site);
  EXPECT_EQ(exchange.crossings, 2);
  EXPECT_EQ(exchange.hops, 2);
  EXPECT_DOUBLE_EQ(exchange.carried, 1.5);
  const PlanWork ring = work(Collective::kAllReduce, "hierarchical-ring", site);
  EXPECT_EQ(ring.crossings, 6);
  EXPECT_DOUBLE_EQ(ring.carried, 1.5);
  EXPECT_EQ(work(Collective::kAllReduce, "hierarchical-tree", site).crossings, 4);
  EXPECT_EQ(work(Collective::kAllReduce, "one-hop", site).carried, 4 * 12);
  EXPECT_EQ(work(Collective::kBarrier, "hierarchical", site).crossings, 2);
}

TEST(SeveralHosts, OnOneHostTheModelKnowsNoNetwork) {
  const PlanWork work = ::tessera::work_of(
      find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged)->build({.ranks = 8}));
  EXPECT_EQ(work.crossings, 0);
  EXPECT_EQ(work.messages, 0);
  EXPECT_EQ(work.carried, 0);
}

TEST(SeveralHosts, TheModelPrefersWhatTheRulesDoForSmallAndForLarge) {
  const Site site = site_of(4, 4);
  Estimator estimator(site, nullptr);
  const auto time = [&](Protocol protocol, std::string_view name, size_t bytes) {
    const Algorithm* algorithm = find_algorithm(Collective::kAllReduce, name, Reach::kStaged);
    return estimator.estimate({protocol, algorithm}, bytes).microseconds;
  };
  EXPECT_LT(time(Protocol::kLowLatency, "hierarchical-hop", 8),
            time(Protocol::kLowLatency, "one-hop", 8));
  EXPECT_LT(time(Protocol::kLowLatency, "hierarchical-hop", 8),
            time(Protocol::kStaged, "hierarchical", 8));
  EXPECT_LT(time(Protocol::kStaged, "hierarchical", 64 << 20),
            time(Protocol::kStaged, "two-phase", 64 << 20));
  EXPECT_LT(time(Protocol::kStaged, "hierarchical", 64 << 20),
            time(Protocol::kLowLatency, "hierarchical-hop", 64 << 20));
  Site slow = site;
  slow.network.bandwidth /= 10;
  EXPECT_GT(Estimator(slow, nullptr)
                .estimate({Protocol::kStaged,
                           find_algorithm(Collective::kAllReduce, "hierarchical", Reach::kStaged)},
                          64 << 20)
                .microseconds,
            2 * time(Protocol::kStaged, "hierarchical", 64 << 20));
}

}  // namespace
}  // namespace tessera
