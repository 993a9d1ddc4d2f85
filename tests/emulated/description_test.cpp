// What TESSERA_EMULATE may say, and the links that come of it.
#include "transports/emulated/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/graph.h"

namespace tessera::emulated {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using std::chrono::microseconds;
using std::chrono::nanoseconds;

const std::string kSmall = TESSERA_SOURCE_DIR "/tests/topology/corpus/small.xml";

Links links(const std::string& text, int ranks) {
  Result<Links> made = links_of(text, ranks);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(made).value() : Links{};
}

std::string mistake(const std::string& text, int ranks = 2) {
  const Result<Links> made = links_of(text, ranks);
  EXPECT_FALSE(made.ok()) << text;
  return made.ok() ? "" : made.status().message();
}

TEST(Description, UniformLinksHaveRateAndLatency) {
  const Links made = links("uniform:bandwidth=10GB/s,latency=5us", 3);
  EXPECT_EQ(made.ranks, 3);
  EXPECT_EQ(made.lines.size(), 6u);
  EXPECT_DOUBLE_EQ(made.rate(0, 2), 10);
  EXPECT_EQ(made.way(0, 2).latency, microseconds(5));
  EXPECT_TRUE(made.way(1, 1).hops.empty());
  EXPECT_THAT(made.hosts, ElementsAre(0, 0, 0));
}

TEST(Description, UnitsCount) {
  EXPECT_DOUBLE_EQ(links("uniform:bandwidth=8Gb/s", 2).rate(0, 1), 1);
  EXPECT_DOUBLE_EQ(links("uniform:bandwidth=250MB/s", 2).rate(0, 1), 0.25);
  EXPECT_DOUBLE_EQ(links("uniform:bandwidth=2000kB/s", 2).rate(0, 1), 0.002);
  EXPECT_DOUBLE_EQ(links("uniform:bandwidth=5000B/s", 2).rate(0, 1), 5e-6);
  EXPECT_EQ(links("uniform:bandwidth=1GB/s,latency=1.5ms", 2).way(0, 1).latency,
            microseconds(1500));
  EXPECT_EQ(links("uniform:latency=70ns,bandwidth=1GB/s", 2).way(0, 1).latency, nanoseconds(70));
}

TEST(Description, SlowerDividesRatesAndMultipliesLatencies) {
  const Links made = links("uniform:bandwidth=10GB/s,latency=5us,fan_out=100/50,slower=20", 2);
  EXPECT_THAT(made.lines[0].rates, ElementsAre(0.5, 0.25));
  EXPECT_EQ(made.way(0, 1).latency, microseconds(100));
}

TEST(Description, TheExamplesMachineHasEightRanksOnTwoHosts) {
  const Links made = links(TESSERA_SOURCE_DIR "/examples/four_gpus.xml,hosts=2,slower=200", 8);
  EXPECT_THAT(made.hosts, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_DOUBLE_EQ(made.rate(0, 3), 0.2);
  EXPECT_DOUBLE_EQ(made.rate(0, 4), 0.0625);
}

TEST(Description, AMachineHasThePathsOfItsTopology) {
  const Links made = links(kSmall, 2);
  EXPECT_DOUBLE_EQ(made.rate(0, 1), 80) << "four NVLinks of sm 80";
  EXPECT_EQ(made.way(0, 1).latency, nanoseconds(600));
}

TEST(Description, HostsAreJoinedByTheirPorts) {
  const Links made = links(kSmall + ",hosts=2,slower=10", 4);
  EXPECT_THAT(made.hosts, ElementsAre(0, 0, 1, 1));
  EXPECT_DOUBLE_EQ(made.rate(0, 1), 8);
  EXPECT_DOUBLE_EQ(made.rate(0, 2), 1.25) << "a port of 100 Gb/s";
  EXPECT_GT(made.way(0, 2).latency, microseconds(20));
}

TEST(Description, SyntheticMachinesPutRanksOnCores) {
  const Links made = links("pack:2 core:2 pu:1", 4);
  EXPECT_LE(made.rate(0, 3), made.rate(0, 1)) << "between sockets";
}

TEST(Description, LinesAreSharedByThePathsThatNameThem) {
  const Links made = links(kSmall + ",hosts=2", 4);
  const auto fabric_line = [&](int from, int to) {
    for (const Hop& hop : made.way(from, to).hops) {
      const Line& line = made.lines[static_cast<size_t>(hop.line)];
      if (line.name.find("-> fabric") != std::string::npos) return hop.line;
    }
    return -1;
  };
  EXPECT_GE(fabric_line(0, 2), 0);
  EXPECT_EQ(fabric_line(0, 2), fabric_line(1, 3)) << "both leave by the host's only port";
  EXPECT_NE(fabric_line(0, 2), fabric_line(2, 0));
}

// Three devices on a switch.
TEST(Description, DevicesOnASwitchKeepTheirFanOutLimit) {
  topology::Graph graph;
  std::vector<int> nodes;
  for (int i = 0; i < 3; ++i) {
    topology::Node gpu;
    gpu.kind = topology::NodeKind::kGpu;
    gpu.name = "gpu" + std::to_string(i);
    gpu.fan_out = {100, 90};
    nodes.push_back(graph.add_node(gpu));
  }
  topology::Node plane;
  plane.kind = topology::NodeKind::kNvSwitch;
  plane.name = "nvswitch0";
  const int center = graph.add_node(plane);
  for (const int node : nodes) graph.add_link(node, center, topology::LinkKind::kNvlink, 100, 0.3);
  const Result<Links> made = links_on(graph, nodes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Way& way = made->way(0, 1);
  ASSERT_EQ(way.hops.size(), 4u);
  const Line& sends = made->lines[static_cast<size_t>(way.hops.front().line)];
  EXPECT_EQ(sends.name, "gpu0 sends");
  EXPECT_THAT(sends.rates, ElementsAre(100, 90));
  EXPECT_EQ(way.hops.front().peer, 1);
  EXPECT_EQ(way.hops.back().peer, 0);
  EXPECT_THAT(static_cast<double>(way.latency.count()), DoubleNear(600, 1));
}

TEST(Description, RanksThatAreNotConnectedAreNamed) {
  topology::Graph graph;
  for (int i = 0; i < 2; ++i) {
    topology::Node gpu;
    gpu.kind = topology::NodeKind::kGpu;
    gpu.name = "gpu" + std::to_string(i);
    graph.add_node(gpu);
  }
  const Result<Links> made = links_on(graph, {0, 1});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), HasSubstr("rank 0 (gpu0) and rank 1 (gpu1) are not"));
}

TEST(Description, MistakesNameThePlaceAndWhatIsAllowed) {
  EXPECT_THAT(mistake("uniform:latency=5us"), HasSubstr("\"bandwidth=\", which uniform"));
  EXPECT_THAT(mistake("uniform:bandwidth=10GB"),
              HasSubstr("at character 19 (\"10GB\") expected a number in a sensible range with a "
                        "unit of GB/s, MB/s"));
  EXPECT_THAT(mistake("uniform:bandwidth=-1GB/s"), HasSubstr("at character 19"));
  EXPECT_THAT(mistake("uniform:bandwidth=GB/s"), HasSubstr("at character 19"));
  EXPECT_THAT(mistake("uniform:bandwidth=1GB/s,latency=5"), HasSubstr("a unit of ns, us, ms"));
  EXPECT_THAT(mistake("uniform:bandwidth=1GB/s,speed=5"),
              HasSubstr("at character 25 (\"speed=5\") expected bandwidth=, latency="));
  EXPECT_THAT(mistake("uniform:bandwidth=1GB/s,"), HasSubstr("at character 25"));
  EXPECT_THAT(mistake("uniform:"), HasSubstr("at character 9"));
  EXPECT_THAT(mistake("uniform:bandwidth"), HasSubstr("at character"));
  EXPECT_THAT(mistake("uniform:bandwidth=1GB/s,fan_out=100/0"),
              HasSubstr("at character 37 (\"0\") expected a number from 1 to 100"));
  EXPECT_THAT(mistake("uniform:bandwidth=1GB/s,slower=0.5"), HasSubstr("a number from 1"));
  EXPECT_THAT(mistake(kSmall + ",hosts=0"), HasSubstr("a number from 1 to 128"));
  EXPECT_THAT(mistake(kSmall + ",hosts=1.5"), HasSubstr("a whole number"));
  EXPECT_THAT(mistake(kSmall + ",bandwidth=1GB/s"), HasSubstr("expected hosts= or slower="));
  EXPECT_THAT(mistake(""), HasSubstr("expected a file"));
}

TEST(Description, AMachineThatCannotBeReadOrIsTooSmallIsNamed) {
  EXPECT_THAT(mistake("/no/such.xml"), HasSubstr("TESSERA_EMULATE: /no/such.xml: "));
  EXPECT_THAT(mistake(kSmall, 3), HasSubstr("3 ranks do not fit on the machine's 2 GPUs"));
}

}  // namespace
}  // namespace tessera::emulated
