#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/graph_of.h"
#include "topology/nccl_xml.h"
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

TEST(GraphOf, MakesACardOfTheFunctionsOfOneDevice) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  m.nic("0009:03:00.0", cpu, "mlx5_0", 400000, 0xa, -1, 32);
  m.nic("0009:03:00.1", cpu, "mlx5_1", 400000, 0xa, -1, 32);
  m.nic("0009:03:00.2", cpu, "mlx5_2", 400000, 0xa, -1, 32);
  m.nic("000a:03:00.0", cpu, "hfi1_0", 400000, 0xa, -1, 32);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kNic).size(), 2U);
  EXPECT_EQ(graph.of_kind(NodeKind::kPort).size(), 4U);
  // Three ports of 50 GB/s behind one slot of 48
  double slot = 0;
  for (const int link : graph.out[graph.find(0, "nic0")]) {
    if (graph.links[link].kind == LinkKind::kPcie) slot += graph.links[link].bandwidth;
  }
  EXPECT_EQ(slot, 48);
  EXPECT_EQ(links_between(graph, "nic0", "mlx5_2"), 1);
  EXPECT_EQ(links_between(graph, "nic1", "hfi1_0"), 1);
}

TEST(GraphOf, TellsCardsWithinABridgeApartByTheirGuids) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int nic = m.nic("0000:00:00.0", cpu, "a", 100000, 7, -1, 0);
  m.machine.pcis[m.machine.nics[nic].pci].kind = PciKind::kBridge;
  m.port(nic, "b", 100000, 7);
  m.port(nic, "c", 400000, 8);
  m.port(nic, "d", 100000, 0);
  m.port(nic, "e", 100000, 0);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kNic).size(), 4U);
  EXPECT_EQ(graph.of_kind(NodeKind::kPort).size(), 5U);
  EXPECT_GE(bandwidth_of(graph, "cpu0", "c"), 50);
}

TEST(GraphOf, ClampsAnAbsurdPortToItsSlot) {
  MachineBuilder m;
  m.nic("0000:01:00.0", m.cpu(0), "hsi0", 200000000, 0, -1, 16);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(bandwidth_of(graph, "cpu0", "hsi0"), 24);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("port hsi0 states 25000 GB/s, its slot carries 24")));
}

TEST(GraphOf, PairsGpusAndCardsOneToOneBelowAVirtualBridge) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int root = m.bridge("0000:01:00.0", cpu);
  const int a = m.bridge("0000:02:00.0", cpu, root), b = m.bridge("0000:03:00.0", cpu, root);
  m.gpu("0000:10:00.0", cpu, a);
  m.gpu("0000:20:00.0", cpu, b);
  const int a_inner = m.bridge("0000:04:00.0", cpu, a), b_inner = m.bridge("0000:05:00.0", cpu, b);
  m.nic("0000:21:00.0", cpu, "mlx5_0", 100000, 0, b_inner);
  m.nic("0000:11:00.0", cpu, "mlx5_1", 100000, 0, a_inner);
  m.pci_link(a, "0000:03:00.0");
  m.pci_link(b, "0000:02:00.0");
  const Graph graph = graph_of(m.machine);
  const std::vector<int> gpus = graph.of_kind(NodeKind::kGpu);
  const Result<Layout> layout = search(graph, gpus);
  ASSERT_TRUE(layout.ok());
  EXPECT_NE(layout->nic[0], layout->nic[1]);
  EXPECT_EQ(nic_distances(graph, gpus).size(), 4U);
  EXPECT_EQ(class_of(graph, "gpu0", "nic1"), "PIX");
  EXPECT_EQ(class_of(graph, "gpu0", "nic0"), "PXB");
}

TEST(GraphOf, TakesTheSmallerSpeedOfBridgeAndDevice) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  m.gpu("0000:02:00.0", cpu, m.bridge("0000:01:00.0", cpu, -1, 16, 8), 32, 16);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(bandwidth_of(graph, "gpu0", "cpu0"), 12);
  EXPECT_TRUE(graph.of_kind(NodeKind::kPciSwitch).empty()) << "one device below: no node";
}

TEST(GraphOf, DoesNotLetAnUnknownBridgeSlowItsDevices) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int bridge = m.bridge("0000:01:00.0", cpu, -1, 0);
  m.gpu("0000:02:00.0", cpu, bridge, 32);
  m.gpu("0000:03:00.0", cpu, bridge, 32);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(bandwidth_of(graph, "gpu0", "cpu0"), 48);
  EXPECT_EQ(class_of(graph, "gpu0", "gpu1"), "PIX");
}

TEST(GraphOf, FindsDevicesThatOnlyTheirClassTells) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  const int bridge = m.bridge("ffff:ff:01.0", cpu);
  m.gpu("0000:02:00.0", cpu, bridge);
  m.nic("0000:03:00.0", cpu, "", 0, 0, bridge);
  m.machine.gpus.clear();
  m.machine.nics.clear();
  m.machine.peer_links_stated = false;
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(class_of(graph, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(graph.of_kind(NodeKind::kPort).size(), 1U);
  EXPECT_THAT(graph.notes, Contains(HasSubstr("no port is stated")));
}

TEST(GraphOf, KeepsGpuAndNicPairsUnderBridgesOfOneBusIdApart) {
  MachineBuilder m;
  const int cpu = m.cpu(1);
  for (int i = 0; i < 8; ++i) {
    const std::string domain = "000" + std::to_string(i);
    const int bridge = m.bridge("0000:c5:00.0", cpu);
    m.gpu(domain + ":01:00.0", cpu, bridge);
    m.nic(domain + ":02:00.0", cpu, "mlx5_" + std::to_string(i), 200000, 0, bridge);
  }
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(graph.of_kind(NodeKind::kPciSwitch).size(), 8U);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      EXPECT_EQ(class_of(graph, "gpu" + std::to_string(i), "nic" + std::to_string(j)),
                i == j ? "PIX" : "PHB");
    }
  }
}

TEST(GraphOf, LinksAGpuToItsCpuByC2c) {
  MachineBuilder m;
  const int gpu = m.gpu("0000:01:00.0", m.cpu(0));
  PeerLink link;
  link.kind = PeerLinkKind::kC2c;
  link.gpu = gpu;
  link.megabytes.value = 300000;
  m.machine.peer_links.push_back(link);
  const Graph graph = graph_of(m.machine);
  EXPECT_EQ(class_of(graph, "gpu0", "cpu0"), "C2C");
  EXPECT_EQ(bandwidth_of(graph, "gpu0", "cpu0"), 300);
}

TEST(GraphOf, NamesNumaNodesByTheirIdAndLeavesOutMemoryOnlyOnes) {
  MachineBuilder m;
  CpuSet some, none;
  some.add(0);
  some.add(1);
  const int first = m.cpu(8), twin = m.cpu(252), bare = m.cpu(253);
  m.machine.cpus[first].affinity.value = some;
  m.machine.cpus[twin].affinity.value = some;
  m.machine.cpus[bare].affinity.value = none;
  const Graph graph = graph_of(m.machine);
  ASSERT_EQ(graph.of_kind(NodeKind::kCpu).size(), 2U);
  EXPECT_EQ(graph.nodes[0].name, "cpu8");
  EXPECT_EQ(graph.nodes[1].name, "cpu252");  // equal processors: kept apart, as NCCL does
}

TEST(GraphOf, SaysThatStatedRanksWithGapsDoNotCount) {
  MachineBuilder m;
  const int cpu = m.cpu(0);
  m.gpu("0000:01:00.0", cpu);
  m.machine.gpus.back().rank.value = 0;
  EXPECT_THAT(graph_of(m.machine).notes, Not(Contains(HasSubstr("ranks"))));
  m.machine.gpus.back().rank.value = 7;
  EXPECT_THAT(graph_of(m.machine).notes, Contains(HasSubstr("the ranks that are stated")));
}

// What both of two GPUs state about their links to each other, as attributes of <nvlink>.
double nvlinks_between(const std::string& first, const std::string& second) {
  const Result<Machine> machine = parse_nccl_xml(
      "<system version='1'><cpu numaid='0' affinity='f'>"
      "<pci busid='01:00.0' class='0x030200'><gpu dev='0' sm='80'>"
      "<nvlink target='02:00.0' tclass='0x030200' " +
          first +
          "/></gpu></pci><pci busid='02:00.0' class='0x030200'><gpu dev='1' sm='80'>"
          "<nvlink target='01:00.0' tclass='0x030200' " +
          second + "/></gpu></pci></cpu></system>",
      "test.xml");
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return bandwidth_of(graph_of(machine.value()), "gpu0", "gpu1") / 20;
}

TEST(GraphOf, ACountThatOneEndStatesHoldsForBoth) {
  EXPECT_EQ(nvlinks_between("", "count='5'"), 5);
  EXPECT_EQ(nvlinks_between("count='5'", ""), 5);
  EXPECT_EQ(nvlinks_between("count='-3'", "count='5'"), 5);
  EXPECT_EQ(nvlinks_between("count='many'", "count='5'"), 5);
  EXPECT_EQ(nvlinks_between("count='4'", "count='5'"), 4);
  EXPECT_EQ(nvlinks_between("", ""), 1);
}

}  // namespace
}  // namespace tessera::topology
