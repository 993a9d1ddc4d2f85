// The files of real machines hold what their description says: counted here in the same way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "topology/nccl_xml.h"
#include "topology/support/files.h"

namespace tessera::topology {
namespace {

using testing::read_text;
using testing::shared_folder;
using testing::shared_nccl_files;
using testing::warnings_of;
using testing::warnings_with;

// In the words of the table: "2 (0:48, 1:48) | pci 16 | gpu 8 (0) | nic 4/0/0 | 0 entries ...".
std::string counted(const Machine& m) {
  std::string cpus;
  for (const Cpu& cpu : m.cpus)
    cpus += fmt::format("{}{}:{}", cpus.empty() ? "" : ", ", cpu.numa.or_else(-1),
                        cpu.affinity.given() ? std::to_string(cpu.affinity.value->count()) : "?");
  const auto of_kind = [&](PciKind kind) {
    return std::count_if(m.pcis.begin(), m.pcis.end(),
                         [&](const Pci& pci) { return pci.kind == kind; });
  };
  const auto nic_class = std::count_if(m.pcis.begin(), m.pcis.end(), [](const Pci& pci) {
    return pci.pci_class.or_else(0) >> 16 == 0x02;
  });
  std::set<std::set<std::string>> pairs;
  int entries = 0, sum = 0;
  for (const PeerLink& link : m.peer_links) {
    const BusId own = *m.pcis[static_cast<size_t>(link.pci)].bus_id.value;
    ++entries;
    sum += link.count.or_else(0);
    pairs.insert({to_string(own), link.target});
  }
  return fmt::format("{} ({}) | {} | {} ({}) | {}/{}/{} | {} {} {}", m.cpus.size(), cpus,
                     m.pcis.size(), of_kind(PciKind::kGpu), m.gpus.size(), nic_class, m.nics.size(),
                     m.nets.size(), entries, pairs.size(), sum);
}

struct Golden {
  const char* file;
  const char* counts;
};

// Of azure-ncv4.xml the four links of a GPU to itself are left out.
const Golden kGolden[] = {
    {"aws-p4d-24xlarge.xml", "2 (0:48, 1:48) | 16 | 8 (0) | 4/0/0 | 0 0 0"},
    {"aws-p5-48xlarge.xml", "2 (0:?, 1:?) | 40 | 0 (0) | 0/0/0 | 0 0 0"},
    {"azure-ncv4.xml", "4 (0:24, 1:24, 2:24, 3:24) | 4 | 4 (4) | 0/1/1 | 0 0 0"},
    {"azure-ndv4.xml", "4 (0:24, 1:24, 2:24, 3:24) | 20 | 8 (0) | 8/0/0 | 0 0 0"},
    {"azure-ndv5.xml", "2 (0:48, 1:48) | 24 | 8 (0) | 8/0/0 | 0 0 0"},
    {"gvisor-b200-vm.xml", "2 (0:44, 1:44) | 11 | 8 (8) | 0/3/13 | 8 8 144"},
    {"oci-a100-flattened-b4.xml", "4 (3:32, 1:32, 7:28, 5:32) | 20 | 8 (0) | 8/0/0 | 0 0 0"},
    {"oci-h100-bm.xml", "2 (0:112, 1:112) | 40 | 8 (8) | 8/8/16 | 32 32 144"},
    {"rccl-3p_pcie.xml", "2 (0:32, 1:32) | 7 | 3 (3) | 1/1/1 | 0 0 0"},
    {"rccl-4p1h.xml", "1 (0:28) | 10 | 4 (4) | 1/1/1 | 8 4 8"},
    {"rccl-4p4h.xml", "1 (1:64) | 52 | 16 (16) | 16/16/16 | 48 24 48"},
    {"rccl-4p_940.xml", "4 (2:48, 3:48, 0:48, 1:48) | 8 | 4 (4) | 4/4/4 | 12 6 12"},
    {"rccl-8p6l_6nic.xml", "2 (0:48, 1:48) | 22 | 8 (8) | 6/6/6 | 48 24 48"},
    {"rccl-8p_90a_1.xml", "3 (3:32, 1:32, 0:32) | 8 | 8 (8) | 0/1/1 | 24 12 24"},
    {"rccl-8p_940.xml", "2 (0:112, 1:112) | 40 | 8 (8) | 8/8/8 | 56 28 56"},
    {"rccl-8p_940vm.xml", "2 (0:48, 1:48) | 16 | 8 (8) | 8/8/8 | 56 28 56"},
    {"rccl-8p_rome_n4.xml",
     "7 (1:16, 2:16, 3:16, 5:16, 6:16, 7:16, 4:16) | 17 | 8 (8) | 1/1/1 | 16 8 16"},
    {"rccl-8p_rome_vm1.xml", "4 (0:30, 1:30, 2:30, 3:30) | 8 | 8 (8) | 0/1/1 | 24 12 24"},
    {"rccl-16p1h.xml", "4 (0:64, 1:64, 2:64, 3:64) | 52 | 16 (16) | 8/8/8 | 56 28 112"},
};

class NcclFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shared_folder().empty())
      GTEST_SKIP() << "no files of real machines here; TESSERA_SHARED names their folder";
  }

  static Machine machine(const std::string& file) {
    Result<Machine> machine = read_nccl_xml(shared_folder() / file);
    EXPECT_TRUE(machine.ok()) << machine.status().message();
    return machine.ok() ? std::move(machine.value()) : Machine();
  }
};

TEST_F(NcclFiles, HoldTheStatedNumberOfEveryPart) {
  for (const Golden& golden : kGolden)
    EXPECT_EQ(counted(machine(golden.file)), golden.counts) << golden.file;
}

TEST_F(NcclFiles, AllOfThemAreRead) {
  ASSERT_THAT(shared_nccl_files(), ::testing::Not(::testing::IsEmpty()));
  for (const auto& path : shared_nccl_files()) {
    const Result<Machine> machine = read_nccl_xml(path);
    EXPECT_TRUE(machine.ok()) << machine.status().message();
  }
}

TEST_F(NcclFiles, ReadBackAsWritten) {
  for (const auto& path : shared_nccl_files()) {
    const Machine first = machine(path.filename());
    const Machine second = testing::parsed(write_nccl_xml(first));
    EXPECT_EQ(difference(first, second), "") << path;
    EXPECT_EQ(write_nccl_xml(first), write_nccl_xml(second)) << path;
  }
}

TEST_F(NcclFiles, CutAtAnyPlaceGiveAnErrorWithAPlaceAndNothingElse) {
  const std::string text = read_text(shared_folder() / "gvisor-b200-vm.xml");
  const size_t end = text.rfind("</system>") + 9;
  for (size_t length = 1; length < end; length += 7) {
    const std::string error = testing::parse_error(text.substr(0, length));
    EXPECT_THAT(error, ::testing::StartsWith("test.xml:")) << length;
  }
}

TEST_F(NcclFiles, LinksBetweenGpusAreUnstatedWhereDevicesAreListedByClassOnly) {
  for (const char* file : {"aws-p4d-24xlarge.xml", "aws-p5-48xlarge.xml", "azure-ndv4.xml",
                           "azure-ndv5.xml", "oci-a100-flattened-b4.xml"})
    EXPECT_FALSE(machine(file).peer_links_stated) << file;
  for (const char* file : {"rccl-3p_pcie.xml", "azure-ncv4.xml", "oci-h100-bm.xml"})
    EXPECT_TRUE(machine(file).peer_links_stated) << file;
}

TEST_F(NcclFiles, NoOddityWithoutAWarning) {
  const auto count = [&](const char* file, const char* text, int expected) {
    const Machine m = machine(file);
    EXPECT_EQ(warnings_with(m, text), expected) << file << "\n" << warnings_of(m);
  };
  count("aws-p5-48xlarge.xml", "\"32 GT/s PCIe/s\" is an unusual text: read as 32 GT/s", 32);
  count("aws-p5-48xlarge.xml", "what it is stays unknown", 32);
  count("aws-p5-48xlarge.xml", "no affinity", 2);
  count("azure-ncv4.xml", "its target is the device itself", 4);
  count("azure-ncv4.xml", "link_width \"0\" cannot be read", 4);
  count("azure-ncv4.xml", "link_speed \"\" cannot be read", 4);
  count("azure-ncv4.xml", "has no position on the bus", 1);
  count("gvisor-b200-vm.xml", "a hidden switch", 8);
  count("oci-a100-flattened-b4.xml", "cpu numaid=7: 28 CPUs, other nodes have 32", 1);
  count("oci-h100-bm.xml", "a switch that is not listed", 4);
  count("oci-h100-bm.xml", "10.0 GB/s", 0);
  count("oci-h100-bm.xml", "slower than a device below it", 8);
  count("oci-h100-bm.xml", "is not a nominal speed", 16);
  count("rccl-4p4h.xml", "occurs 8 times", 2);
  count("rccl-4p_940.xml", "is more than any port has", 4);
  count("rccl-8p_90a_1.xml", "has no position on the bus", 1);
  count("rccl-8p_rome_vm1.xml", "has no position on the bus", 1);
  count("rccl-16p1h.xml", "slower than a device below it", 16);
}

TEST_F(NcclFiles, ThoseWithoutOdditiesGiveNoWarning) {
  for (const char* file :
       {"aws-p4d-24xlarge.xml", "azure-ndv4.xml", "azure-ndv5.xml", "rccl-8p_940.xml",
        "rccl-8p_940vm.xml", "rccl-8p6l_6nic.xml", "rccl-8p_rome_n4.xml"})
    EXPECT_EQ(warnings_of(machine(file)), "") << file;
}

TEST_F(NcclFiles, EveryWarningHasALine) {
  for (const auto& path : shared_nccl_files())
    for (const Warning& warning : machine(path.filename()).warnings)
      EXPECT_GT(warning.line, 0) << path << ": " << warning.text;
}

TEST_F(NcclFiles, APortFasterThanAnyIsLimitedToItsPcieLink) {
  const Machine m = machine("rccl-4p_940.xml");
  for (const Net& net : m.nets) EXPECT_NEAR(*net.megabits.value, 252062, 1);
}

TEST_F(NcclFiles, DevicesBelowEqualBusIdsStaySeparate) {
  const Machine m = machine("rccl-4p4h.xml");
  std::set<int> parents;
  for (const Gpu& gpu : m.gpus) parents.insert(m.pcis[static_cast<size_t>(gpu.pci)].parent);
  EXPECT_EQ(parents.size(), 16U);
}

}  // namespace
}  // namespace tessera::topology
