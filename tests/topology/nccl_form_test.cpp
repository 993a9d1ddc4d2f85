// What is written for NCCL is what NCCL's reader takes, whatever the machine was read from.
#include "topology/nccl_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "topology/graph_of.h"
#include "topology/hwloc_read.h"
#include "topology/nccl_xml.h"
#include "topology/support/files.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::parsed;
using testing::shared_folder;
using ::testing::SizeIs;

// What NCCL's reader ends with an error for.
void expect_ncclable(const std::string& text) {
  EXPECT_THAT(text, ::testing::StartsWith("<system version=\""));
  for (const Pci& pci : parsed(text).pcis) EXPECT_FALSE(pci.bus_id.absent());
  for (const Cpu& cpu : parsed(text).cpus) EXPECT_FALSE(cpu.numa.absent());
}

// A card and a GPU below a host bridge, as hwloc has them.
Machine below_a_host_bridge() {
  Machine m;
  m.hosts.emplace_back();
  m.cpus.emplace_back();
  Pci bridge;
  bridge.cpu = 0;
  bridge.pci_class.value = 0x060000;
  bridge.kind = PciKind::kBridge;
  m.pcis.push_back(bridge);
  for (const uint32_t pci_class : {0x020000, 0x030200}) {
    Pci device;
    device.cpu = device.parent = 0;
    device.bus_id.value = BusId{0, static_cast<uint8_t>(m.pcis.size()), 0, 0};
    device.pci_class.value = pci_class;
    m.pcis.push_back(device);
  }
  Gpu gpu;
  gpu.pci = 2;
  m.gpus.push_back(gpu);
  m.nics.push_back({.cpu = 0, .pci = 1, .others = {}, .origin = {}});
  return m;
}

TEST(NcclForm, LeavesHostBridgesOutAndMovesUpWhatIsBelowThem) {
  const Machine m = below_a_host_bridge();
  const std::string text = write_nccl_xml(m);
  expect_ncclable(text);
  EXPECT_THAT(text, Not(HasSubstr("0x060000")));
  const Machine read = parsed(text);
  ASSERT_THAT(read.pcis, SizeIs(2));
  EXPECT_EQ(read.pcis[0].parent, -1);
  EXPECT_EQ(read.pcis[1].parent, -1);
  EXPECT_EQ(read.gpus.at(0).pci, 1);
  EXPECT_EQ(read.nics.at(0).pci, 0);
  EXPECT_EQ(difference(in_nccl_form(m), read), "");
}

TEST(NcclForm, GivesIdsThatNothingElseHas) {
  Machine m =
      parsed(testing::on_one_cpu("<pci busid='ffff:00:00.0' class='0x020000'/>"
                                 "<pci class='0x030200'><gpu dev='0'/></pci>"
                                 "<pci class='0x010802'/>"));
  const std::string text = write_nccl_xml(m);
  expect_ncclable(text);
  std::set<BusId> ids;
  for (const Pci& pci : parsed(text).pcis) ids.insert(*pci.bus_id.value);
  EXPECT_THAT(ids, SizeIs(3));
}

TEST(NcclForm, PlacesGpusOfUnknownPosition) {
  Machine m = below_a_host_bridge();
  for (int i : {1, 2}) {
    m.gpus.emplace_back();
    PeerLink link;
    link.gpu = i;
    link.target_id.value = BusId{0, 2, 0, 0};
    m.peer_links.push_back(link);
  }
  const std::string text = write_nccl_xml(m);
  expect_ncclable(text);
  const Machine read = parsed(text);
  EXPECT_THAT(read.gpus, SizeIs(3));
  ASSERT_THAT(read.cpus, SizeIs(2));
  EXPECT_EQ(read.cpus[1].numa.value, -1);
  EXPECT_EQ(difference(in_nccl_form(m), read), "");
  EXPECT_EQ(graph_of(read).of_kind(NodeKind::kGpu).size(), 3U);
}

TEST(NcclForm, StatesAVersionWhereNoneWasGiven) {
  EXPECT_THAT(write_nccl_xml(parsed("<system><cpu numaid='0' affinity='f'/></system>")),
              HasSubstr("<system version=\"1\">"));
  EXPECT_THAT(write_nccl_xml(parsed("<system version='2'><cpu numaid='0'/></system>")),
              HasSubstr("<system version=\"2\">"));
}

TEST(NcclForm, OfDisplaysOfManagementControllersMakesNoGpus) {
  const Machine m = parsed(testing::on_one_cpu(
      "<pci busid='01:00.0' class='0x030000' vendor='0x102b' device='0x0534'/>"
      "<pci busid='02:00.0' class='0x030000' vendor='0x1a03' device='0x2000'/>"
      "<pci busid='03:00.0' class='0x030200' vendor='0x10de' device='0x2330'/>"
      "<pci busid='04:00.0' class='0x030000' vendor='0x1a03'><gpu dev='1'/></pci>"));
  EXPECT_EQ(m.pcis[0].kind, PciKind::kOther);
  EXPECT_EQ(m.pcis[1].kind, PciKind::kOther);
  EXPECT_EQ(m.pcis[2].kind, PciKind::kGpu);
  EXPECT_EQ(m.pcis[3].kind, PciKind::kGpu);  // the file says so
  EXPECT_EQ(graph_of(m).of_kind(NodeKind::kGpu).size(), 2U);
}

TEST(NcclForm, MachinesOfHwlocFilesReadBackAsTheirForm) {
  if (shared_folder().empty())
    GTEST_SKIP() << "no files of real machines here; TESSERA_SHARED names their folder";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shared_folder())) {
    if (!entry.path().filename().string().starts_with("hwloc")) continue;
    const Result<Machine> machine = read_hwloc_xml(entry.path());
    if (!machine.ok()) continue;
    ++files;
    const std::string text = write_nccl_xml(machine.value());
    expect_ncclable(text);
    EXPECT_THAT(text, Not(HasSubstr("speed=\"-1\""))) << entry.path();
    const Machine read = parsed(text);
    EXPECT_EQ(difference(in_nccl_form(machine.value()), read), "") << entry.path();
    const Graph before = graph_of(machine.value()), after = graph_of(read);
    for (const NodeKind kind : {NodeKind::kGpu, NodeKind::kNic, NodeKind::kPort})
      EXPECT_EQ(before.of_kind(kind).size(), after.of_kind(kind).size())
          << entry.path() << ": " << to_string(kind);
  }
  EXPECT_GT(files, 3);
}

TEST(NcclForm, ThisMachineReadsBackAsItsForm) {
  const Result<Machine> machine = discover();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  const std::string text = write_nccl_xml(machine.value());
  expect_ncclable(text);
  EXPECT_EQ(difference(in_nccl_form(machine.value()), parsed(text)), "");
}

}  // namespace
}  // namespace tessera::topology
