#include "topology/graph_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/hwloc_read.h"
#include "topology/paths.h"
#include "topology/search.h"
#include "topology/support/graph_queries.h"
#include "topology/support/sample_graphs.h"
#include "topology/support/sample_machines.h"
#include "topology/view.h"

namespace tessera::topology {
namespace {

using samples::bandwidth_of;
using samples::class_of;
using samples::kNvlink;
using samples::kXgmi;
using samples::links_between;
using samples::MachineBuilder;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_everything_reaches_everything(const Graph& graph) {
  Paths paths(graph);
  for (const int gpu : graph.of_kind(NodeKind::kGpu)) {
    for (const NodeKind kind : {NodeKind::kGpu, NodeKind::kNic, NodeKind::kCpu}) {
      for (const int other : graph.of_kind(kind)) {
        const Reach reach = paths.reach(gpu, other);
        EXPECT_TRUE(reach.found && reach.bandwidth > 0)
            << graph.nodes[gpu].name << " to " << graph.nodes[other].name;
      }
    }
  }
}

TEST(GraphOf, PutsADeviceOfAnUnknownNodeEquallyFarFromAllNodes) {
  MachineBuilder m;
  const int known = m.cpu(0), other = m.cpu(1), unknown = m.cpu(-1);
  m.gpu("0000:65:00.0", known);
  m.gpu("0000:66:00.0", other);
  m.nic("0000:00:05.0", unknown, "eth0", 25000, 0, -1, 0);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.hosts, 1);
  EXPECT_EQ(graph.of_kind(NodeKind::kGpu).size(), 2U);
  EXPECT_EQ(graph.of_kind(NodeKind::kNic).size(), 1U);
  EXPECT_EQ(graph.of_kind(NodeKind::kCpu).size(), 2U);
  EXPECT_EQ(class_of(graph, "gpu0", "nic0"), "SYS");
  EXPECT_EQ(class_of(graph, "gpu1", "nic0"), "SYS");
  EXPECT_EQ(bandwidth_of(graph, "gpu0", "nic0"), bandwidth_of(graph, "gpu1", "nic0"));
  EXPECT_THAT(graph.notes, Contains(HasSubstr("nic0 of host 0: its NUMA node is unknown")));
  expect_everything_reaches_everything(graph);
}

TEST(GraphOf, AssumesACpuWhereNoNodeIsKnown) {
  MachineBuilder m;
  const int a = m.cpu(-1), b = m.cpu(-1);
  m.machine.cpus[b].numa = {};
  m.gpu("0000:65:00.0", a);
  m.gpu("0000:66:00.0", b);
  m.nic("0000:67:00.0", -1, "eth0", 25000);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kCpu).size(), 1U);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("one CPU is assumed")));
  expect_everything_reaches_everything(graph);
}

TEST(GraphOf, AnEmptyMachineIsOneAssumedCpu) {
  const Graph graph = graph_of(Machine{});
  EXPECT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.hosts, 1);
}

TEST(GraphOf, IsTheSameForBothEncodingsOfACpuFamily) {
  const auto with_family = [](int family) {
    MachineBuilder m;
    m.gpu("0000:01:00.0", m.cpu(0, "AuthenticAMD", family, 1));
    m.gpu("0000:02:00.0", m.cpu(1, "AuthenticAMD", family, 1));
    return graph_of(m.machine);
  };
  EXPECT_EQ(view_difference(view_of(with_family(175)), view_of(with_family(25))), "");
  const Graph unknown = with_family(99);
  EXPECT_EQ(bandwidth_of(unknown, "cpu0", "cpu1"), 16);
  EXPECT_THAT(unknown.notes, Contains(HasSubstr("AMD CPU family 99 is not in the table: 16 GB/s")));
}

TEST(GraphOf, KeepsGpusThatShareABusIdApartAndWithoutDirectPath) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  m.instance(m.gpu("0000:00:00.0", cpu, -1, 0));
  m.gpu("0001:00:00.0", cpu, -1, 0);
  m.gpu("0002:00:00.0", cpu, -1, 0);
  m.gpu("0002:00:00.0", cpu, -1, 0);
  const Graph graph = graph_of(m.machine);
  const std::vector<int> gpus = graph.of_kind(NodeKind::kGpu);
  ASSERT_EQ(gpus.size(), 5U);
  Paths paths(graph);
  for (const auto& [a, b] : {std::pair{0, 1}, {3, 4}}) {
    const Path path = paths.between(gpus[a], gpus[b]);
    EXPECT_STREQ(class_name(graph, path), "PHB");
    EXPECT_EQ(path.bandwidth, 6);  // half of the assumed 12
  }
  EXPECT_EQ(bandwidth_of(graph, "gpu2", "cpu0"), 12);
  EXPECT_EQ(stated_ranks(graph).size(), 5U);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("2 GPUs of host 0 are 0002:00:00.0")));
  expect_everything_reaches_everything(graph);
}

TEST(GraphOf, MakesALinkThatOneEndStatesSymmetric) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int a = m.gpu("0000:11:00.0", cpu);
  m.gpu("0000:12:00.0", cpu);
  m.link(kXgmi, a, "0000:12:00.0", 1, 0x120000);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(class_of(graph, "gpu1", "gpu0"), "NVL");
  EXPECT_EQ(bandwidth_of(graph, "gpu0", "gpu1"), 48);
  EXPECT_EQ(bandwidth_of(graph, "gpu1", "gpu0"), 48);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("gpu0 states a link to gpu1, which does not")));
}

TEST(GraphOf, TakesTheSmallerOfTwoStatedCounts) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int a = m.gpu("0000:11:00.0", cpu), b = m.gpu("0000:12:00.0", cpu);
  m.link(kXgmi, a, "0000:12:00.0", 4, 0x120000);
  m.link(kXgmi, b, "0000:11:00.0", 2, 0x120000);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(links_between(graph, "gpu0", "gpu1"), 2);
  EXPECT_EQ(links_between(graph, "gpu1", "gpu0"), 2);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("state 4 and 2 links")));
}

TEST(GraphOf, DropsAndCountsLinksToWhatIsNotVisibleOrToItself) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int a = m.gpu("0000:11:00.0", cpu), b = m.gpu("0000:12:00.0", cpu);
  m.link(kXgmi, a, "0000:99:00.0", 1, 0x120000);
  m.link(kXgmi, b, "0000:99:00.0", 1, 0x120000);
  m.link(kNvlink, a, "0000:11:00.0", 12);
  const Graph graph = graph_of(m.machine);
  EXPECT_THAT(graph.notes, Contains("2 links lead outside the visible set: dropped"));
  EXPECT_THAT(graph.notes, Contains("1 links lead from a GPU to itself: dropped"));
  EXPECT_EQ(class_of(graph, "gpu0", "gpu1"), "PHB");
}

TEST(GraphOf, MakesOneHiddenSwitchPlaneForAllGpus) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  for (int i = 0; i < 4; ++i) {
    const int gpu = m.gpu("000" + std::to_string(i) + ":00:00.0", cpu);
    m.machine.gpus[gpu].compute_capability.value = 100;
    m.link(kNvlink, gpu, "fffffff:ff:ff.0", 18, 0x068000);
  }
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kNvSwitch).size(), 1U);
  EXPECT_EQ(class_of(graph, "gpu0", "gpu3"), "NVL");
  EXPECT_NEAR(bandwidth_of(graph, "gpu0", "gpu3"), 18 * 40.1, 0.01);
  const std::vector<double>& fan_out = graph.nodes[graph.find(0, "gpu0")].fan_out;
  ASSERT_FALSE(fan_out.empty());
  EXPECT_NEAR(fan_out[0], 18 * 40.1, 0.01);
  EXPECT_LT(fan_out.back(), fan_out[0]);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("by number of peers is not measured")));
}

TEST(GraphOf, MakesSwitchPlanesThatAppearOnlyAsTargets) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  for (int i = 0; i < 2; ++i) {
    const int gpu = m.gpu("000" + std::to_string(i) + ":00:00.0", cpu);
    m.link(kNvlink, gpu, "0000:1a:00.0", 5, 0x068000);
    m.link(kNvlink, gpu, "0000:1b:00.0", 4, 0x068000);
  }
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kNvSwitch).size(), 2U);
  EXPECT_EQ(links_between(graph, "gpu0", "nvswitch0"), 5);
  EXPECT_EQ(links_between(graph, "gpu1", "nvswitch1"), 4);
}

// GPUs, each with a link to the switch named for it.
Graph on_switches(const std::vector<std::string>& switches) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  for (size_t i = 0; i < switches.size(); ++i)
    m.link(kNvlink, m.gpu("000" + std::to_string(i) + ":00:00.0", cpu), switches[i], 6, 0x068000);
  return graph_of(m.machine);
}

TEST(GraphOf, SaysWhereNoLinkBetweenGroupsOfSwitchesIsStated) {
  const auto note = Contains(
      HasSubstr("GPUs hang on 2 groups of switches, and no link between the groups is stated"));
  const std::string a = "0000:1a:00.0", b = "0000:1b:00.0";
  EXPECT_THAT(on_switches({a, a, b, b}).notes, note);
  EXPECT_THAT(on_switches({a, a, a, a}).notes, Not(note));
}

TEST(GraphOf, UsesAGivenFanOutTable) {
  MachineBuilder m;
  const int gpu = m.gpu("0000:01:00.0", m.cpu(0));
  m.link(kNvlink, gpu, "0000:1a:00.0", 10, 0x068000);
  GraphOptions options;
  options.fan_out = {1.0, 0.5};
  const Graph graph = graph_of(m.machine, options);
  EXPECT_THAT(graph.nodes[graph.find(0, "gpu0")].fan_out, ::testing::ElementsAre(200, 100));
  EXPECT_THAT(graph.notes, Not(Contains(HasSubstr("not measured"))));
}

TEST(GraphOf, HangsCoresBelowTheCachesThatTheyShare) {
  MachineBuilder m;
  m.cpu(0);
  CpuTopology& cpus = m.machine.hosts[0].cpus;
  CpuSet all;
  for (int i = 0; i < 8; ++i) {
    CpuSet core;
    core.add(i);
    all.add(i);
    cpus.cores.push_back(core);
    cpus.caches.push_back({2, 1 << 20, core});
  }
  for (int half = 0; half < 2; ++half) {
    CpuSet four;
    for (int i = 0; i < 4; ++i) four.add(half * 4 + i);
    cpus.caches.push_back({3, 32 << 20, four});
  }
  m.machine.cpus[0].affinity.value = all;
  cpus.allowed = all;
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kCore).size(), 8U);
  EXPECT_EQ(graph.of_kind(NodeKind::kCache).size(), 2U);
  Paths paths(graph);
  EXPECT_EQ(paths.reach(graph.find(0, "core0"), graph.find(0, "core3")).type, LinkKind::kCache);
  EXPECT_EQ(paths.reach(graph.find(0, "core0"), graph.find(0, "core4")).type, LinkKind::kMemory);
  GraphOptions bare;
  bare.cores = false;
  EXPECT_EQ(graph_of(m.machine, bare).nodes.size(), 1U);
  CpuSet one;
  one.add(5);
  cpus.allowed = one;
  EXPECT_EQ(graph_of(m.machine).of_kind(NodeKind::kCore).size(), 1U);
}

TEST(GraphOf, JoinsSeveralHostsByAFabric) {
  MachineBuilder m;
  m.machine.hosts.emplace_back();
  m.gpu("0000:01:00.0", m.cpu(0));
  const int second = m.cpu(0);
  m.machine.cpus[second].host = 1;
  m.gpu("0000:01:00.0", second);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.hosts, 2);
  EXPECT_EQ(graph.of_kind(NodeKind::kFabric).size(), 1U);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("2 of 2 hosts have no port")));
  expect_everything_reaches_everything(graph);
}

TEST(Replicate, CopiesAHostAndAssumesAPortWhereNoneIsKnown) {
  const Graph host = samples::two_sockets(4);
  const Graph graph = replicate(host, 3);
  EXPECT_EQ(graph.hosts, 3);
  EXPECT_EQ(graph.of_kind(NodeKind::kGpu).size(), 12U);
  EXPECT_EQ(graph.of_kind(NodeKind::kPort).size(), 3U);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("10 Gb/s Ethernet is assumed")));
  expect_everything_reaches_everything(graph);
  EXPECT_TRUE(replicate(host, 1).of_kind(NodeKind::kFabric).empty());
}

TEST(GraphOf, NodesOfASocketShareItsLinkToTheOther) {
  const Result<Machine> machine = read_synthetic("pack:2 numa:3 core:2 pu:1");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  const Graph graph = graph_of(machine.value());
  int between = 0;
  for (const Link& link : graph.links) {
    if (link.kind != LinkKind::kSmp) continue;
    const bool crosses = graph.nodes[link.from].numa / 3 != graph.nodes[link.to].numa / 3;
    EXPECT_EQ(link.bandwidth, crosses ? 10 : 100);
    between += crosses ? 1 : 0;
  }
  EXPECT_EQ(between, 2) << "one link, two directions";
  EXPECT_EQ(bandwidth_of(graph, "cpu1", "cpu5"), 10);
  EXPECT_EQ(class_of(graph, "cpu1", "cpu5"), "SYS");
}

TEST(GraphOf, SaysWhereSocketsAreNotKnown) {
  MachineBuilder m;
  for (int numa = 0; numa < 4; ++numa) m.cpu(numa);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.out[graph.find(0, "cpu0")].size(), 3U);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("which NUMA nodes share a socket is not stated")));
}

TEST(GraphOf, IsLinearInLongChainsAndWideBridges) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  int parent = -1;
  for (int i = 0; i < 2000; ++i) parent = m.bridge("0000:01:00.0", cpu, parent);
  m.gpu("0000:02:00.0", cpu, parent);
  const int wide = m.bridge("0000:03:00.0", cpu);
  for (int i = 0; i < 50000; ++i) {
    m.bridge("0000:04:00.0", cpu, wide);
    m.machine.pcis.back().kind = PciKind::kOther;
  }
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.nodes.size(), 2U);
}

}  // namespace
}  // namespace tessera::topology
