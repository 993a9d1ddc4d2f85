#include "topology/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "topology/graph_of.h"
#include "topology/support/sample_graphs.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Layout layout_of(const Graph& graph) {
  Result<Layout> layout = search(graph, samples::gpus(graph));
  return layout.ok() ? layout.value() : Layout{};
}

TEST(Draw, DotHasAClusterPerHostAndNumaNode) {
  const std::string dot = to_dot(replicate(samples::dgx(), 2));
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_h0 {"));
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_h1 {"));
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_h1_n1 {"));
  EXPECT_THAT(dot, HasSubstr("fabric"));
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

TEST(Draw, DotColoursLinksByKindAndShowsRings) {
  const Graph graph = samples::xgmi_ring();
  const Layout layout = layout_of(graph);
  const std::string dot = to_dot(graph, &layout);
  EXPECT_THAT(dot, HasSubstr("tooltip=\"xgmi\""));
  EXPECT_THAT(dot, HasSubstr("tooltip=\"pcie\""));
  EXPECT_THAT(dot, HasSubstr("tooltip=\"ring 1\""));
  EXPECT_THAT(dot, HasSubstr("rank 3"));
}

TEST(Draw, EscapesWhatWouldEndALabel) {
  Graph graph = samples::single_gpu();
  graph.nodes[1].label = "a\"b\\c\nd\x1b[31m";
  const std::string dot = to_dot(graph);
  EXPECT_THAT(dot, HasSubstr("a\\\"b\\\\c\\nd[31m"));
  const std::string text = to_text(graph);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Draw, TextShowsMachinePathsRingsAndTrees) {
  const Graph graph = replicate(samples::dgx(), 2);
  const Layout layout = layout_of(graph);
  const std::string text = to_text(graph, &layout);
  EXPECT_THAT(text, HasSubstr("host 1\n  cpu0"));
  EXPECT_THAT(text, HasSubstr("|- switch0  pcie 48 GB/s"));
  EXPECT_THAT(text, HasSubstr("gpu0 -- nvswitch0  nvlink 103 GB/s, 5 links"));
  EXPECT_THAT(text, HasSubstr("rank 15"));
  EXPECT_THAT(text, HasSubstr("NVL 103"));
  EXPECT_THAT(text, HasSubstr("*nic3 PIX 48"));
  EXPECT_THAT(text, HasSubstr("ring 0 ("));
  EXPECT_THAT(text, HasSubstr("tree 1 ("));
}

TEST(Draw, TextSaysHowMuchItLeavesOut) {
  const Graph graph = replicate(samples::dgx(), 16);
  const Layout layout = layout_of(graph);
  const std::string text = to_text(graph, &layout);
  EXPECT_THAT(text, HasSubstr("and 12 more hosts"));
  EXPECT_THAT(text, HasSubstr("and 96 more ranks"));
}

TEST(Draw, TextNamesAssumptions) {
  EXPECT_THAT(to_text(replicate(samples::two_sockets(2), 2)),
              HasSubstr("assumed: 2 of 2 hosts have no port that is known"));
}

TEST(Draw, AnEmptyGraphHasAnEmptyPicture) {
  EXPECT_EQ(to_text(Graph{}), "host 0\n");
  EXPECT_THAT(to_dot(Graph{}), HasSubstr("digraph"));
}

}  // namespace
}  // namespace tessera::topology
