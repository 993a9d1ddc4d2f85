#include "topology/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "topology/graph_of.h"
#include "topology/support/sample_graphs.h"

namespace tessera::topology {
namespace {

std::string class_of(const Graph& graph, const std::string& from, const std::string& to,
                     int host_to = 0) {
  Paths paths(graph);
  return class_name(graph, paths.between(graph.find(0, from), graph.find(host_to, to)));
}

TEST(Paths, HaveTheNamesThatNcclGivesThem) {
  const Graph dgx = samples::dgx();
  EXPECT_EQ(class_of(dgx, "gpu0", "gpu0"), std::string("LOC"));
  EXPECT_EQ(class_of(dgx, "gpu0", "gpu7"), std::string("NVL"));
  EXPECT_EQ(class_of(dgx, "gpu0", "nic0"), std::string("PIX"));
  EXPECT_EQ(class_of(dgx, "gpu0", "nic1"), std::string("PHB"));
  EXPECT_EQ(class_of(dgx, "gpu0", "nic7"), std::string("SYS"));
  EXPECT_EQ(class_of(dgx, "gpu0", "cpu0"), std::string("PHB"));
  const Graph hosts = replicate(dgx, 2);
  EXPECT_EQ(class_of(hosts, "gpu0", "gpu0", 1), std::string("NET"));
  EXPECT_EQ(class_of(samples::xgmi_ring(), "gpu0", "gpu3"), std::string("NVB"));
  EXPECT_EQ(class_of(samples::cores(2, 8), "core0", "core1"), std::string("PHB"));
  EXPECT_EQ(class_of(samples::cores(2, 8), "core0", "core8"), std::string("SYS"));
}

TEST(Paths, ThroughSeveralSwitchesArePxb) {
  Graph graph = samples::two_sockets(4);
  graph.add_link(graph.find(0, "switch0"), graph.find(0, "switch1"), LinkKind::kPcie, 12, 0.5);
  EXPECT_EQ(class_of(graph, "gpu0", "gpu2"), std::string("PXB"));
  EXPECT_EQ(class_of(graph, "gpu0", "gpu1"), std::string("PIX"));
}

TEST(Paths, PreferTheNearerKindThenTheWiderThenTheShorter) {
  Graph graph;
  for (const char* name : {"a", "b", "c", "d"}) {
    Node node;
    node.name = name;
    graph.add_node(node);
  }
  graph.add_link(0, 1, LinkKind::kSmp, 100, 0.1);
  graph.add_link(0, 2, LinkKind::kPcie, 10, 0.1);
  graph.add_link(2, 1, LinkKind::kPcie, 10, 0.1);
  EXPECT_EQ(Paths(graph).between(0, 1).type, LinkKind::kPcie);
  graph.add_link(0, 3, LinkKind::kPcie, 20, 0.1);
  graph.add_link(3, 1, LinkKind::kPcie, 20, 0.1);
  EXPECT_EQ(Paths(graph).between(0, 1).bandwidth, 20);
  graph.add_link(0, 1, LinkKind::kPcie, 20, 5);
  const Path path = Paths(graph).between(0, 1);
  EXPECT_EQ(path.hops, 1);
  EXPECT_EQ(path.latency, 5);
}

TEST(Paths, OfLeastLatencyIgnoreBandwidth) {
  const Graph graph = samples::dgx();
  const Path wide = Paths(graph).between(graph.find(0, "gpu0"), graph.find(0, "gpu1"));
  const Path fast =
      Paths(graph, Prefer::kLatency).between(graph.find(0, "gpu0"), graph.find(0, "gpu1"));
  EXPECT_EQ(wide.type, LinkKind::kNvlink);
  EXPECT_LE(fast.latency, wide.latency);
}

TEST(Paths, DoNotPassThroughGpusButByTheirOwnLinks) {
  const Graph ring = samples::xgmi_ring();
  const Path path = Paths(ring).between(ring.find(0, "gpu0"), ring.find(0, "nic0"));
  for (size_t i = 0; i + 1 < path.links.size(); ++i) {
    EXPECT_NE(ring.nodes[ring.links[path.links[i]].to].kind, NodeKind::kGpu);
  }
}

TEST(Paths, DoNotPassThroughCards) {
  Graph graph = samples::two_sockets(2);
  Node nic;
  nic.kind = NodeKind::kNic;
  nic.name = "nic0";
  const int card = graph.add_node(nic);
  graph.add_link(card, graph.find(0, "cpu0"), LinkKind::kPcie, 99, 0);
  graph.add_link(card, graph.find(0, "cpu1"), LinkKind::kPcie, 99, 0);
  const Path path = Paths(graph).between(graph.find(0, "gpu0"), graph.find(0, "gpu1"));
  EXPECT_EQ(path.type, LinkKind::kSmp);
}

TEST(Paths, FollowLinksFromEndToEnd) {
  const Graph graph = replicate(samples::dgx(), 3);
  Paths paths(graph);
  for (const int from : samples::gpus(graph)) {
    for (const int to : graph.of_kind(NodeKind::kNic)) {
      const Path path = paths.between(from, to);
      ASSERT_TRUE(path.found);
      int at = from;
      double bandwidth = std::numeric_limits<double>::infinity();
      for (const int link : path.links) {
        ASSERT_EQ(graph.links[link].from, at);
        at = graph.links[link].to;
        bandwidth = std::min(bandwidth, graph.links[link].bandwidth);
      }
      EXPECT_EQ(at, to);
      EXPECT_EQ(bandwidth, path.bandwidth);
      EXPECT_EQ(path.links.size(), static_cast<size_t>(path.hops));
    }
  }
}

// Every simple path between two nodes, by the rules of paths.h.
void all_paths(const Graph& graph, int at, int to, std::vector<int>& links, std::vector<char>& seen,
               Reach& best) {
  if (at == to) {
    Reach reach{true, std::numeric_limits<double>::infinity(), 0, 0, LinkKind::kLocal};
    bool through_gpu = false;
    for (size_t i = 0; i < links.size(); ++i) {
      const Link& link = graph.links[links[i]];
      reach = join(reach, {true, link.bandwidth, link.latency, 1, link.kind});
      if (i > 0 && graph.nodes[link.from].kind == NodeKind::kGpu) through_gpu = true;
    }
    if (through_gpu && reach.type > LinkKind::kXgmi) return;
    if (compare(reach, best) < 0) best = reach;
    return;
  }
  if (links.size() > 6) return;
  for (const int link : graph.out[at]) {
    const int next = graph.links[link].to;
    const NodeKind kind = graph.nodes[next].kind;
    if (seen[next] != 0 || (next != to && (kind == NodeKind::kNic || kind == NodeKind::kPort))) {
      continue;
    }
    seen[next] = 1;
    links.push_back(link);
    all_paths(graph, next, to, links, seen, best);
    links.pop_back();
    seen[next] = 0;
  }
}

TEST(Paths, AreTheBestOfAllInRandomGraphs) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Graph graph = samples::random_host(seed);
    std::vector<int> ends = samples::gpus(graph);
    if (ends.size() > 5) continue;  // all paths are many
    for (const int cpu : graph.of_kind(NodeKind::kCpu)) ends.push_back(cpu);
    Paths paths(graph);
    for (const int from : ends) {
      for (const int to : ends) {
        if (from == to) continue;
        Reach best;
        std::vector<int> links;
        std::vector<char> seen(graph.nodes.size(), 0);
        seen[from] = 1;
        all_paths(graph, from, to, links, seen, best);
        const Reach found = paths.reach(from, to);
        ASSERT_TRUE(found.found);
        EXPECT_EQ(found.type, best.type) << seed << " " << from << " " << to;
        EXPECT_EQ(found.bandwidth, best.bandwidth) << seed << " " << from << " " << to;
        EXPECT_EQ(found.hops, best.hops) << seed << " " << from << " " << to;
      }
    }
  }
}

TEST(Paths, AreAbsentWhereTheGraphIsNotConnected) {
  Graph graph = samples::single_gpu();
  Node alone;
  alone.name = "alone";
  const int node = graph.add_node(alone);
  Paths paths(graph);
  EXPECT_FALSE(paths.reach(0, node).found);
  EXPECT_EQ(class_name(graph, paths.between(0, node)), std::string("DIS"));
}

TEST(Paths, ThroughParallelPlanesAreDisjoint) {
  const Graph graph = samples::dgx();
  Paths paths(graph);
  const std::vector<Path> ways = paths.disjoint(graph.find(0, "gpu0"), graph.find(0, "gpu5"), 8);
  ASSERT_EQ(ways.size(), 4U);
  std::vector<int> links;
  for (const Path& way : ways) links.insert(links.end(), way.links.begin(), way.links.end());
  std::sort(links.begin(), links.end());
  EXPECT_EQ(std::adjacent_find(links.begin(), links.end()), links.end());
}

}  // namespace
}  // namespace tessera::topology
