#include "topology/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "topology/graph_of.h"
#include "topology/search_parts.h"
#include "topology/support/sample_graphs.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;

Layout found(const Graph& graph, const std::vector<int>& nodes) {
  Result<Layout> result = search(graph, nodes);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result.value()) : Layout{};
}

std::string refusal(const Graph& graph, const std::vector<int>& nodes) {
  const Result<Layout> result = search(graph, nodes);
  return result.ok() ? "accepted" : result.status().message();
}

// Links of a hop lead from one rank's node to the other's.
void expect_walk(const Graph& graph, const Layout& layout, const Hop& hop) {
  int at = layout.nodes[hop.from];
  for (const int link : hop.links) {
    ASSERT_EQ(graph.links[link].from, at);
    at = graph.links[link].to;
  }
  EXPECT_EQ(at, layout.nodes[hop.to]);
}

void expect_valid(const Graph& graph, const Layout& layout) {
  const size_t n = layout.nodes.size();
  ASSERT_FALSE(layout.rings.empty());
  ASSERT_FALSE(layout.trees.empty());
  for (const Ring& ring : layout.rings) {
    std::vector<int> sorted = ring.order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(sorted[i], static_cast<int>(i));
    ASSERT_EQ(sorted.size(), n);
    ASSERT_EQ(ring.hops.size(), n > 1 ? n : 0);
    for (size_t i = 0; i < ring.hops.size(); ++i) {
      EXPECT_EQ(ring.hops[i].from, ring.order[i]);
      EXPECT_EQ(ring.hops[i].to, ring.order[(i + 1) % n]);
      expect_walk(graph, layout, ring.hops[i]);
    }
    EXPECT_GT(ring.bandwidth, 0);
  }
  for (const Tree& tree : layout.trees) {
    ASSERT_EQ(tree.parent.size(), n);
    EXPECT_EQ(tree.parent[tree.root], -1);
    EXPECT_EQ(tree.hops.size(), n - 1);
    for (const Hop& hop : tree.hops) {
      EXPECT_EQ(tree.parent[hop.from], hop.to);
      expect_walk(graph, layout, hop);
    }
    for (size_t rank = 0; rank < n; ++rank) {
      int at = static_cast<int>(rank);
      for (size_t steps = 0; steps < n && tree.parent[at] >= 0; ++steps) at = tree.parent[at];
      ASSERT_EQ(at, tree.root) << "rank " << rank << " does not reach the root";
    }
    EXPECT_GT(tree.bandwidth, 0);
  }
}

double naive_bandwidth(const Graph& graph, const std::vector<int>& nodes) {
  Paths paths(graph);
  std::vector<Hop> hops;
  const int n = static_cast<int>(nodes.size());
  for (int i = 0; n > 1 && i < n; ++i) {
    hops.push_back({i, (i + 1) % n, paths.between(nodes[i], nodes[(i + 1) % n]).links, -1});
  }
  return shared_bandwidth(graph, nodes, {hops});
}

TEST(Search, FillsAllLinksOfAnNvSwitchMachine) {
  const Graph graph = samples::dgx();
  const Layout layout = found(graph, samples::gpus(graph));
  expect_valid(graph, layout);
  EXPECT_NEAR(layout.ring_bandwidth, 18 * 20.6, 0.1);
}

TEST(Search, FindsEveryEdgeDisjointRingOfAFullMesh) {
  // n GPUs have n - 1 links each; the rings of Walecki use all of them, or all but one if n is even
  for (const int n : {3, 5, 6, 7, 8, 9, 12}) {
    const Graph graph = samples::xgmi_mesh(n);
    const Layout layout = found(graph, samples::gpus(graph));
    expect_valid(graph, layout);
    EXPECT_GE(layout.ring_bandwidth, 48.0 * (n % 2 == 1 ? n - 1 : n - 2) - 0.1) << n;
    if (n < 5) continue;
    std::map<int, int> uses;
    for (const Ring& ring : layout.rings) {
      for (const Hop& hop : ring.hops) {
        for (const int link : hop.links) ++uses[link];
      }
    }
    for (const auto& [link, count] : uses) {
      EXPECT_LE(count * layout.rings[0].bandwidth, graph.links[link].bandwidth + 1e-6);
    }
  }
}

TEST(Search, FollowsTheRingThatTheLinksMake) {
  const Graph graph = samples::xgmi_ring();
  const Layout layout = found(graph, samples::gpus(graph));
  expect_valid(graph, layout);
  EXPECT_EQ(layout.rings.size(), 2U);  // both ways round
  EXPECT_NEAR(layout.ring_bandwidth, 48, 0.01);
  EXPECT_GT(layout.ring_bandwidth, naive_bandwidth(graph, samples::gpus(graph)));
}

TEST(Search, CrossesTheSocketLinkOnceEachWay) {
  const Graph graph = samples::two_sockets(8, true);
  const Layout layout = found(graph, samples::gpus(graph));
  expect_valid(graph, layout);
  EXPECT_NEAR(layout.ring_bandwidth, 10, 0.01);
  EXPECT_LT(naive_bandwidth(graph, samples::gpus(graph)), 3);
}

TEST(Search, PutsHostRanksThatShareACacheNextToEachOther) {
  const Graph graph = samples::cores(2, 16);
  std::vector<int> nodes = samples::core_nodes(graph);
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937(7));
  const Layout layout = found(graph, nodes);
  expect_valid(graph, layout);
  const std::vector<int>& order = layout.rings[0].order;
  int changes = 0;
  Paths paths(graph);
  for (size_t i = 0; i < order.size(); ++i) {
    const int a = nodes[order[i]], b = nodes[order[(i + 1) % order.size()]];
    if (paths.reach(a, b).type > LinkKind::kCache) ++changes;
  }
  EXPECT_EQ(changes, 8);  // as many as there are caches
}

TEST(Search, EntersAndLeavesEachHostByTheCardOfTheRail) {
  const Graph graph = replicate(samples::dgx(), 4);
  const Layout layout = found(graph, samples::gpus(graph));
  expect_valid(graph, layout);
  ASSERT_GE(layout.rings.size(), 8U);
  for (const Ring& ring : layout.rings) {
    std::set<std::string> ports;
    int crossings = 0;
    for (const Hop& hop : ring.hops) {
      const int from = graph.nodes[layout.nodes[hop.from]].host;
      const int to = graph.nodes[layout.nodes[hop.to]].host;
      if (from != to) {
        ++crossings;
        EXPECT_EQ(to, (from + 1) % 4);
      }
      for (const int link : hop.links) {
        if (graph.nodes[graph.links[link].to].kind == NodeKind::kPort) {
          ports.insert(graph.nodes[graph.links[link].to].name);
        }
      }
    }
    EXPECT_EQ(crossings, 4);
    EXPECT_EQ(ports.size(), 1U);
  }
  EXPECT_GE(layout.ring_bandwidth, 8 * 40);
}

TEST(Search, GivesEachGpuACardOfItsOwnWhereThereAreEnough) {
  const Graph graph = replicate(samples::xgmi_mesh(8), 2);
  const Layout layout = found(graph, samples::gpus(graph));
  EXPECT_EQ(std::set<int>(layout.nic.begin(), layout.nic.end()).size(), 16U);
  for (int rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(graph.nodes[layout.nic[rank]].index, rank % 8) << "ties by index";
  }
}

TEST(Search, SharesCardsEvenlyWhereThereAreFewer) {
  const Graph graph = samples::cores(1, 16);
  const Layout layout = found(graph, samples::core_nodes(graph));
  for (const int nic : layout.nic) EXPECT_EQ(graph.nodes[nic].name, "nic0");
}

TEST(Search, TellsTheDistanceOfEveryRankToEveryCard) {
  const Graph graph = samples::dgx();
  const std::vector<NicDistance> all = nic_distances(graph, samples::gpus(graph));
  ASSERT_EQ(all.size(), 64U);
  EXPECT_EQ(graph.nodes[all[0].nic].name, "nic0");
  EXPECT_STREQ(class_name(graph, all[0].path), "PIX");
  EXPECT_STREQ(class_name(graph, all[7].path), "SYS");
}

TEST(Search, MakesDoubleTreesInWhichFewHostsAreInnerTwice) {
  for (int n = 1; n <= 40; ++n) {
    const auto [first, second] = double_tree(n);
    std::vector<int> inner(n, 0);
    for (const auto* tree : {&first, &second}) {
      std::set<int> parents(tree->begin(), tree->end());
      std::map<int, int> children;
      for (const int parent : *tree) ++children[parent];
      for (const auto& [parent, count] : children) {
        if (parent < 0) {
          EXPECT_EQ(count, 1) << n;
        } else {
          EXPECT_LE(count, 2) << n;
          ++inner[parent];
        }
      }
    }
    EXPECT_LE(std::count(inner.begin(), inner.end(), 2), n % 2) << n;
  }
}

TEST(Search, IsValidForEveryNumberOfRanksAndHosts) {
  for (const int hosts : {1, 2, 3, 5}) {
    const Graph graph = hosts == 1 ? samples::dgx() : replicate(samples::dgx(), hosts);
    for (int per_host = 1; per_host <= 8; per_host += hosts > 2 ? 3 : 1) {
      std::vector<int> nodes;
      for (int host = 0; host < hosts; ++host) {
        const std::vector<int> all = graph.of_kind(NodeKind::kGpu, host);
        nodes.insert(nodes.end(), all.begin(), all.begin() + per_host);
      }
      SCOPED_TRACE(::testing::Message() << hosts << " hosts, " << per_host << " ranks each");
      expect_valid(graph, found(graph, nodes));
    }
  }
}

TEST(Search, IsValidWhereHostsHaveDifferentNumbersOfRanks) {
  const Graph graph = replicate(samples::xgmi_mesh(4), 3);
  std::vector<int> nodes = samples::gpus(graph);
  nodes.erase(nodes.begin() + 1);
  nodes.erase(nodes.begin() + 5, nodes.begin() + 7);
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937(3));
  expect_valid(graph, found(graph, nodes));
}

TEST(Search, ServesSeveralHostRanksOnOneCpu) {
  const Graph graph = samples::two_sockets(2);
  const int a = graph.find(0, "cpu0"), b = graph.find(0, "cpu1");
  expect_valid(graph, found(graph, {a, b, a, b, a}));
  expect_valid(graph, found(graph, {a, a}));
}

TEST(Search, IsNeverWorseThanTheNaiveOrder) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    Graph graph = samples::random_host(seed);
    if (seed % 3 == 1) graph = replicate(graph, 2);
    if (seed % 3 == 2) graph = replicate(graph, 3);
    std::vector<int> nodes = samples::gpus(graph);
    std::shuffle(nodes.begin(), nodes.end(), std::mt19937(seed));
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Layout layout = found(graph, nodes);
    expect_valid(graph, layout);
    EXPECT_GE(layout.ring_bandwidth, naive_bandwidth(graph, nodes) * (1 - 1e-6));
  }
}

TEST(Search, FindsTheSameLayoutEveryTime) {
  const Graph graph = replicate(samples::random_host(11), 3);
  const Layout a = found(graph, samples::gpus(graph)), b = found(graph, samples::gpus(graph));
  ASSERT_EQ(a.rings.size(), b.rings.size());
  for (size_t i = 0; i < a.rings.size(); ++i) EXPECT_EQ(a.rings[i].order, b.rings[i].order);
  EXPECT_EQ(a.nic, b.nic);
}

double seconds_for(const Graph& graph, const std::vector<int>& nodes) {
  const auto begin = std::chrono::steady_clock::now();
  const Layout layout = found(graph, nodes);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  expect_valid(graph, layout);
  return taken.count();
}

TEST(Search, LaysOutAThousandRanks) {
  const Graph dgx = replicate(samples::dgx(), 128);
  const double gpus = seconds_for(dgx, samples::gpus(dgx));
  const Graph hosts = replicate(samples::cores(2, 64), 8);
  const double cores = seconds_for(hosts, samples::core_nodes(hosts));
  const Graph big = samples::cores(8, 128);
  const double one_host = seconds_for(big, samples::core_nodes(big));
  RecordProperty("seconds", ::testing::PrintToString(std::vector<double>{gpus, cores, one_host}));
}

TEST(Search, RefusesRanksThatItCannotPlace) {
  const Graph graph = samples::dgx();
  EXPECT_THAT(refusal(graph, {}), HasSubstr("at least one rank"));
  EXPECT_THAT(refusal(graph, {graph.find(0, "gpu0"), 4711}), HasSubstr("rank 1 sits on node 4711"));
  EXPECT_THAT(refusal(graph, {-1}), HasSubstr("rank 0 sits on node -1"));
  EXPECT_THAT(refusal(graph, {graph.find(0, "nic3")}), HasSubstr("nic3 of host 0, which is a nic"));
  const int gpu = graph.find(0, "gpu5");
  EXPECT_THAT(refusal(graph, {gpu, graph.find(0, "gpu1"), gpu}),
              HasSubstr("ranks 0 and 2 are both on gpu5"));
}

TEST(Search, RefusesAGraphThatIsNotConnected) {
  Graph graph = samples::single_gpu();
  Node alone;
  alone.kind = NodeKind::kGpu;
  alone.name = "gpu9";
  const int node = graph.add_node(alone);
  EXPECT_THAT(refusal(graph, {graph.find(0, "gpu0"), node}),
              HasSubstr("no path between rank 0 (gpu0 of host 0) and rank 1 (gpu9 of host 0)"));
}

TEST(Search, CountsWhatASwitchDeliversToSeveralPeers) {
  const Graph graph = samples::dgx();
  const std::vector<int> nodes = samples::gpus(graph);
  Paths paths(graph);
  const auto hop = [&](int from, int to) {
    return Hop{from, to, paths.disjoint(nodes[from], nodes[to], 1)[0].links, -1};
  };
  Graph narrow = graph;
  narrow.nodes[nodes[0]].fan_out = {100, 40};
  EXPECT_DOUBLE_EQ(shared_bandwidth(narrow, nodes, {{hop(0, 1)}}), 100);
  EXPECT_DOUBLE_EQ(shared_bandwidth(narrow, nodes, {{hop(0, 1), hop(0, 2), hop(0, 3)}}), 40.0 / 3);
}

}  // namespace
}  // namespace tessera::topology
