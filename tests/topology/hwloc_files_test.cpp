// Recorded machines: the reader finds what hwloc 2.9 finds, and what the documents say beyond.
#include "topology/hwloc_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "topology/affinity.h"
#include "topology/hwloc_read.h"
#include "topology/hwloc_write.h"

namespace tessera::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::recorded;
using ::testing::SizeIs;

struct Counts {
  int units, cores, packages, cpus, memory_nodes, gpus, nics, devices, bridges, os_devices;
  size_t latency_nodes;
  std::vector<std::string> matrices;  // name:objects
};

int count(const Machine& machine, PciKind kind) {
  return static_cast<int>(std::count_if(machine.pcis.begin(), machine.pcis.end(),
                                        [&](const Pci& pci) { return pci.kind == kind; }));
}

std::vector<std::string> matrices_of(const HwlocTopology& topology) {
  unsigned number = 16;
  hwloc_distances_s* matrices[16] = {};
  EXPECT_EQ(hwloc_distances_get(topology.get(), &number, matrices, 0, 0), 0);
  std::vector<std::string> names;
  for (unsigned i = 0; i < number; ++i) {
    const char* name = hwloc_distances_get_name(topology.get(), matrices[i]);
    names.push_back((name == nullptr ? "" : name) + (":" + std::to_string(matrices[i]->nbobjs)));
    hwloc_distances_release(topology.get(), matrices[i]);
  }
  return names;
}

class HwlocFile : public ::testing::Test {
 protected:
  // Reads the file, checks counts, and that it survives being written.
  void read(const std::string& name, const Counts& expected) {
    const std::string path = recorded(name);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
    Result<HwlocTopology> topology = HwlocTopology::from_file(path);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    machine_ = machine_of(topology.value());
    present_ = true;
    const CpuTopology& cpus = machine_.hosts.at(0).cpus;
    EXPECT_EQ(cpus.processing_units, expected.units);
    EXPECT_THAT(cpus.cores, SizeIs(expected.cores));
    EXPECT_THAT(cpus.packages, SizeIs(expected.packages));
    EXPECT_EQ(std::count_if(machine_.cpus.begin(), machine_.cpus.end(),
                            [](const Cpu& cpu) { return cpu.numa.given(); }),
              expected.cpus);
    EXPECT_THAT(cpus.memory_nodes, SizeIs(expected.memory_nodes));
    EXPECT_THAT(machine_.gpus, SizeIs(expected.gpus));
    EXPECT_THAT(machine_.nics, SizeIs(expected.nics));
    EXPECT_EQ(static_cast<int>(machine_.pcis.size()) - count(machine_, PciKind::kBridge),
              expected.devices);
    EXPECT_EQ(count(machine_, PciKind::kBridge), expected.bridges);
    EXPECT_EQ(testing::objects(topology->get(), HWLOC_OBJ_OS_DEVICE), expected.os_devices);
    EXPECT_THAT(cpus.latency_nodes, SizeIs(expected.latency_nodes));
    EXPECT_EQ(matrices_of(topology.value()), expected.matrices);
    EXPECT_THAT(machine_.warnings, IsEmpty());
    written_again(topology.value());
  }

  void written_again(const HwlocTopology& topology) {
    const Result<std::string> text = write_hwloc_xml(topology);
    ASSERT_TRUE(text.ok()) << text.status().message();
    const auto again = HwlocTopology::from_document(text.value(), "written.xml");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(difference(machine_, machine_of(again.value())), "");
  }

  const Pci& pci_of(const Gpu& gpu) const { return machine_.pcis.at(static_cast<size_t>(gpu.pci)); }
  int64_t numa_of(const Pci& pci) const {
    return machine_.cpus.at(static_cast<size_t>(pci.cpu)).numa.or_else(-1);
  }
  // "0004:04:00.0@0": bus id and NUMA node.
  std::vector<std::string> gpus() const {
    std::vector<std::string> all;
    for (const Gpu& gpu : machine_.gpus)
      all.push_back(to_string(*pci_of(gpu).bus_id.value) + "@" +
                    std::to_string(numa_of(pci_of(gpu))));
    return all;
  }

  Machine machine_;
  bool present_ = false;
};

TEST_F(HwlocFile, OldSchemaWithNodesOutOfOrder) {
  read("hwloc-16amd64-4distances-v1.xml", {16, 16, 8, 8, 0, 0, 0, 0, 0, 0, 8, {":8", ":8"}});
  if (!present_) return;
  std::vector<int64_t> order;
  for (const Cpu& cpu : machine_.cpus) order.push_back(*cpu.numa.value);
  EXPECT_THAT(order, ElementsAre(1, 0, 2, 5, 4, 3, 6, 7));
  EXPECT_EQ(machine_.cpus[0].affinity.value->ranges(), "0-1");
  EXPECT_EQ(machine_.cpus[0].vendor, "AuthenticAMD");
  EXPECT_EQ(machine_.cpus[0].family.value, 15);
  const CpuTopology& host = machine_.hosts[0].cpus;
  EXPECT_EQ(*std::max_element(host.latency.begin(), host.latency.end()), 8u);
}

TEST_F(HwlocFile, AMachineOfWhichAQuarterMayBeUsed) {
  read("hwloc-64intel64-irregular-limited.xml",
       {64, 64, 8, 8, 0, 2, 2, 8, 14, 3, 8, {"NUMALatency:8"}});
  if (!present_) return;
  EXPECT_EQ(machine_.hosts[0].cpus.allowed.ranges(), "0-15");
  EXPECT_THAT(gpus(), ElementsAre("0002:01:00.0@4", "0004:01:00.0@7"));
  for (const Gpu& gpu : machine_.gpus) {
    std::string warning;
    const CpuSet usable =
        usable_near(machine_, pci_of(gpu).cpu, machine_.hosts[0].cpus.allowed, &warning);
    EXPECT_FALSE(usable.empty());
    EXPECT_TRUE(machine_.hosts[0].cpus.allowed.contains(usable));
    EXPECT_THAT(warning, HasSubstr("no allowed CPU on NUMA node"));
  }
}

TEST_F(HwlocFile, TwoNvlinkIslandsOfEight) {
  read("hwloc-dgx2-v100.xml",
       {4, 4, 2, 2, 0, 16, 0, 28, 60, 16, 2, {"NUMALatency:2", "NVLinkBandwidth:28"}});
  if (!present_) return;
  EXPECT_EQ(machine_.hosts[0].cpus.allowed.mask(), "03000003");
  EXPECT_TRUE(machine_.peer_links_stated);
  ASSERT_THAT(machine_.peer_links, SizeIs(96));
  std::map<int, std::set<std::string>> switches;
  std::map<std::string, int> ports;
  for (const PeerLink& link : machine_.peer_links) {
    EXPECT_EQ(link.kind, PeerLinkKind::kNvlink);
    EXPECT_EQ(link.megabytes.value, 25000);
    EXPECT_EQ(link.target_class.value, 0x068000u) << "also the one whose class cannot be read";
    switches[*machine_.gpus[static_cast<size_t>(link.gpu)].device.value].insert(link.target);
    ++ports[link.target];
  }
  ASSERT_THAT(switches, SizeIs(16));
  ASSERT_THAT(ports, SizeIs(12));
  for (const auto& [target, number] : ports) EXPECT_EQ(number, 8) << target;
  for (int i = 1; i < 16; ++i) EXPECT_EQ(switches[i] == switches[0], i < 8) << i;
  EXPECT_TRUE(ports.contains("0000:66:00.0"));
}

TEST_F(HwlocFile, ANewerSchemaIsAnErrorWithItsVersion) {
  const std::string path = recorded("hwloc-gb10-arm-v3.xml");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  const auto machine = read_hwloc_xml(path);
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.status().message(), HasSubstr(path + ":3: schema version 3.0"));
  EXPECT_THAT(machine.status().message(), HasSubstr("--export-xml-flags v2"));
}

TEST_F(HwlocFile, FastMemoryBesideDramIsNoCpu) {
  read("hwloc-knl-snc4-hybrid.xml", {64, 16, 1, 4, 4, 0, 0, 0, 0, 0, 0, {}});
  if (!present_) return;
  std::vector<int64_t> numa, memory;
  for (const Cpu& cpu : machine_.cpus) numa.push_back(*cpu.numa.value);
  for (const MemoryNode& node : machine_.hosts[0].cpus.memory_nodes) {
    memory.push_back(node.numa);
    EXPECT_EQ(node.kind, "MCDRAM");
    EXPECT_EQ(node.cpus.count(), 16);
  }
  EXPECT_THAT(numa, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(memory, ElementsAre(7, 4, 5, 6));
  EXPECT_FALSE(machine_.peer_links_stated);
}

TEST_F(HwlocFile, NodesOfGpuMemoryAreNoCpus) {
  read("hwloc-lassen-power9-v1.xml", {160, 40, 2, 2, 4, 4, 6, 13, 22, 20, 6, {":6"}});
  if (!present_) return;
  EXPECT_EQ(machine_.cpus[1].numa.value, 8);
  EXPECT_EQ(machine_.cpus[0].arch, "ppc64le");
  std::vector<int64_t> memory;
  for (const MemoryNode& node : machine_.hosts[0].cpus.memory_nodes) {
    memory.push_back(node.numa);
    EXPECT_TRUE(node.cpus.empty());
    EXPECT_EQ(node.bytes >> 20, 16128u);
  }
  EXPECT_THAT(memory, ElementsAre(252, 253, 254, 255));
  EXPECT_THAT(gpus(),
              ElementsAre("0004:04:00.0@0", "0004:05:00.0@0", "0035:03:00.0@8", "0035:04:00.0@8"));
  EXPECT_FALSE(machine_.peer_links_stated) << "the file has no matrix, which is not \"no links\"";
  std::vector<std::string> ports;
  for (const Net& net : machine_.nets) ports.push_back(net.name);
  EXPECT_THAT(ports,
              ElementsAre("mlx5_0", "mlx5_1", "enP5p1s0f0", "enP5p1s0f1", "mlx5_2", "mlx5_3"));
  EXPECT_EQ(machine_.nets[0].port.value, 1);
  EXPECT_EQ(machine_.nets[0].guid.value, 0x506b4b03003ceee8u);
  EXPECT_THAT(machine_.nets[0].others, ElementsAre(Attribute{"netdev", "hsi0"}));
  const auto& latency = machine_.hosts[0].cpus.latency;
  EXPECT_EQ(latency[1], 40u);
  EXPECT_EQ(*std::max_element(latency.begin(), latency.end()), 80u);
}

TEST_F(HwlocFile, NvlinkBetweenGpuAndProcessor) {
  read("hwloc-power8-p100.xml",
       {16, 8, 2, 2, 0, 4, 0, 4, 8, 12, 2, {"NUMALatency:2", "NVLinkBandwidth:6"}});
  if (!present_) return;
  EXPECT_THAT(machine_.gpus[0].names, ElementsAre("cuda0", "opencl0d0", "nvml0"));
  std::vector<std::string> links;
  for (const PeerLink& link : machine_.peer_links) {
    EXPECT_EQ(link.megabytes.value, 40000);
    links.push_back(std::to_string(link.gpu) + (link.kind == PeerLinkKind::kC2c
                                                    ? "-cpu" + std::to_string(link.target_cpu)
                                                    : "-" + link.target));
  }
  EXPECT_THAT(links, ElementsAre("0-0003:01:00.0", "0-cpu0", "1-0002:01:00.0", "1-cpu0",
                                 "2-000b:01:00.0", "2-cpu1", "3-000a:01:00.0", "3-cpu1"));
}

TEST_F(HwlocFile, XgmiBetweenAllPairs) {
  read("hwloc-tioga-mi250x.xml",
       {128, 64, 1, 4, 0, 8, 5, 29, 42, 15, 4, {"NUMALatency:4", "XGMIBandwidth:8", "XGMIHops:8"}});
  if (!present_) return;
  std::map<int, int64_t> node_of_gpu;
  for (const Gpu& gpu : machine_.gpus) node_of_gpu[*gpu.device.value] = numa_of(pci_of(gpu));
  const std::map<int, int64_t> expected{{0, 3}, {1, 3}, {2, 1}, {3, 1},
                                        {4, 0}, {5, 0}, {6, 2}, {7, 2}};
  EXPECT_EQ(node_of_gpu, expected);
  ASSERT_THAT(machine_.peer_links, SizeIs(56));
  for (const PeerLink& link : machine_.peer_links) {
    EXPECT_EQ(link.kind, PeerLinkKind::kXgmi);
    EXPECT_EQ(link.megabytes.value, 100000);
    EXPECT_EQ(link.target_class.value, 0x038000u);
  }
  EXPECT_NEAR(pci_of(machine_.gpus[0]).link_gigabytes.or_else(0), 31.5, 0.1);
  EXPECT_TRUE(pci_of(machine_.gpus[0]).link_gts.absent());
}

TEST(HwlocFiles, WindowsLineEndsAndAByteOrderMarkChangeNothing) {
  const std::string path = recorded("hwloc-power8-p100.xml");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  std::string changed = "\xEF\xBB\xBF";
  for (char c : text.str()) changed += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto plain = HwlocTopology::from_document(text.str(), "plain.xml");
  const auto windows = HwlocTopology::from_document(changed, "windows.xml");
  ASSERT_TRUE(plain.ok() && windows.ok()) << windows.status().message();
  EXPECT_EQ(difference(machine_of(plain.value()), machine_of(windows.value())), "");
}

// Wherever a document ends: an error that names it, or (after the last element) a machine.
TEST(HwlocFiles, CutAnywhereIsAnErrorThatNamesTheFile) {
  const std::string path = recorded("hwloc-power8-p100.xml");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string whole = text.str();
  for (size_t size = 0; size + 12 < whole.size(); size += 37) {
    const auto topology = HwlocTopology::from_document(whole.substr(0, size), "cut.xml");
    ASSERT_FALSE(topology.ok()) << size;
    EXPECT_THAT(topology.status().message(), HasSubstr("cut.xml:")) << size;
  }
}

}  // namespace
}  // namespace tessera::topology
