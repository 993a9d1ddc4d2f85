#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/graph_of.h"
#include "topology/support/sample_graphs.h"
#include "topology/view.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;

TEST(View, IsTheSameForTheSameGraph) {
  EXPECT_EQ(view_difference(view_of(samples::dgx()), view_of(samples::dgx())), "");
}

TEST(View, DoesNotDependOnNotesAndRanks) {
  Graph a = samples::dgx(), b = a;
  b.notes.push_back("something was assumed");
  b.nodes[b.find(0, "gpu0")].rank = 3;
  EXPECT_EQ(view_of(a).fingerprint, view_of(b).fingerprint);
}

TEST(View, TellsWhichPartDiffersAndInWhat) {
  const View a = view_of(samples::xgmi_mesh(8));
  const std::string fewer = view_difference(a, view_of(samples::xgmi_mesh(7)));
  EXPECT_THAT(fewer, HasSubstr("gpus of host 0: 8 here, 7 there"));
  EXPECT_THAT(fewer, HasSubstr("xgmi links of host 0: 28 here, 21 there"));
  const std::string slower = view_difference(a, view_of(samples::xgmi_mesh(8, 24)));
  EXPECT_EQ(slower, "xgmi links of host 0: 28 here and there, but with other names or values\n");
}

TEST(View, TellsWhatOnlyOneSideHas) {
  const View one = view_of(samples::single_gpu()),
             two = view_of(replicate(samples::single_gpu(), 2));
  EXPECT_THAT(view_difference(one, two), HasSubstr("gpus of host 1: none here, 1 there"));
  EXPECT_THAT(view_difference(two, one), HasSubstr("gpus of host 1: 1 here, none there"));
}

TEST(View, ChangesWithEveryValueOfALink) {
  const Graph graph = samples::dgx();
  const uint64_t before = view_of(graph).fingerprint;
  for (const size_t link : {size_t{0}, graph.links.size() - 1}) {
    Graph other = graph;
    other.links[link].bandwidth *= 2;
    EXPECT_NE(view_of(other).fingerprint, before);
    other = graph;
    other.links[link].count += 1;
    EXPECT_NE(view_of(other).fingerprint, before);
  }
}

}  // namespace
}  // namespace tessera::topology
