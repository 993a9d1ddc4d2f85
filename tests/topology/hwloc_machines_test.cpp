// Synthetic machines, the running one, and running ones that hide something: sysfs of containers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "topology/hwloc_read.h"
#include "topology/hwloc_write.h"

namespace tessera::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

Machine synthetic(const std::string& text) {
  const auto topology = HwlocTopology::synthetic(text);
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  if (!topology.ok()) return {};
  const Machine machine = machine_of(topology.value());
  const auto written = write_hwloc_xml(topology.value());
  EXPECT_TRUE(written.ok());
  EXPECT_THAT(written.value(), HasSubstr("<topology version=\"2.0\">"));
  const auto again = HwlocTopology::from_document(written.value(), "written.xml");
  EXPECT_TRUE(again.ok()) << again.status().message();
  if (!again.ok()) return machine;
  EXPECT_EQ(difference(machine, machine_of(again.value())), "");
  EXPECT_THAT(again.value().warnings(), IsEmpty());
  return machine;
}

TEST(Synthetic, AMachineTooLargeToBuildIsRefusedAtOnce) {
  for (const char* text : {"pack:9999 core:999 pu:1", "100000", "2 3 4 5 6 7 8 9"}) {
    const auto topology = HwlocTopology::synthetic(text);
    ASSERT_FALSE(topology.ok());
    EXPECT_THAT(topology.status().message(), HasSubstr("too many"));
  }
  EXPECT_TRUE(HwlocTopology::synthetic("pack:2 [numa(memory=1000000)] core:8 pu:2").ok());
}

TEST(SyntheticMachines, HaveWhatTheTextSays) {
  const Machine machine = synthetic("pack:2 numa:1 l3:1 core:8 pu:2");
  const CpuTopology& cpus = machine.hosts.at(0).cpus;
  EXPECT_EQ(cpus.processing_units, 32);
  EXPECT_THAT(cpus.cores, SizeIs(16));
  EXPECT_THAT(cpus.packages, SizeIs(2));
  ASSERT_THAT(cpus.caches, SizeIs(2));
  EXPECT_EQ(cpus.caches[0].level, 3);
  ASSERT_THAT(machine.cpus, SizeIs(2));
  EXPECT_EQ(machine.cpus[1].affinity.value->ranges(), "16-31");
  EXPECT_EQ(machine.source, "synthetic: pack:2 numa:1 l3:1 core:8 pu:2");
  EXPECT_THAT(machine.pcis, IsEmpty());
  EXPECT_FALSE(machine.peer_links_stated);
}

TEST(SyntheticMachines, OfAnyShapeSurviveBeingWritten) {
  for (const char* text : {"pu:1", "core:1 pu:1", "numa:4 core:2 pu:1",
                           "pack:2 [numa] core:2 [numa] pu:1", "[numa] pack:2 l2:2 core:1 pu:4",
                           "group:2 pack:2 die:2 l3:2 l2:2 core:1 pu:2", "pack:1 core:256 pu:4"})
    EXPECT_GE(synthetic(text).cpus.size(), 1u) << text;
}

TEST(SyntheticMachines, NodesOfOnePackageShareTheirProcessorsOut) {
  const Machine machine = synthetic("[numa] pack:2 [numa] core:2 pu:1");
  ASSERT_THAT(machine.cpus, SizeIs(2));
  ASSERT_THAT(machine.hosts[0].cpus.memory_nodes, SizeIs(1)) << "the one above both packages";
  EXPECT_EQ(machine.hosts[0].cpus.memory_nodes[0].cpus.ranges(), "0-3");
}

TEST(SyntheticMachines, NonsenseIsAnErrorThatShowsTheText) {
  ::testing::internal::CaptureStderr();
  for (const char* text : {"", "pack:two", "pack:0", "nothing", "pu:2 core:2", "pack:-1 pu:1"}) {
    const auto machine = read_synthetic(text);
    ASSERT_FALSE(machine.ok()) << text;
    EXPECT_THAT(machine.status().message(),
                AllOf(HasSubstr(std::string("\"") + text), HasSubstr("no synthetic")));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(ThisMachine, MayBeUsedWhereTheThreadMay) {
  const auto machine = discover();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  ASSERT_THAT(machine.value().hosts, SizeIs(1));
  const CpuTopology& cpus = machine.value().hosts[0].cpus;
  EXPECT_EQ(cpus.allowed, CpuSet::allowed());
  EXPECT_FALSE(cpus.allowed.empty());
  EXPECT_GE(cpus.processing_units, cpus.allowed.count());
  EXPECT_THAT(machine.value().cpus, ::testing::Not(IsEmpty()));
  EXPECT_EQ(machine.value().source, "this machine");
}

TEST(ThisMachine, SurvivesBeingWritten) {
  const auto topology = HwlocTopology::this_machine();
  ASSERT_TRUE(topology.ok());
  const auto again =
      HwlocTopology::from_document(write_hwloc_xml(topology.value()).value(), "written.xml");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(difference(machine_of(topology.value()), machine_of(again.value())), "");
}

TEST(ThisMachine, LeavesTheEnvironmentAsItWas) {
  ASSERT_TRUE(discover().ok());
  EXPECT_EQ(std::getenv("HWLOC_HIDE_ERRORS"), nullptr);
}

// Runs what changes the process in a child, whose failures are those of the test.
void in_child(const std::function<void()>& run) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    run();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThisMachine, ANarrowerBindingIsKept) {
  in_child([] {
    const int processor = CpuSet::allowed().list().back();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    const auto machine = discover();
    ASSERT_TRUE(machine.ok());
    EXPECT_THAT(machine.value().hosts[0].cpus.allowed.list(), ElementsAre(processor));
  });
}

// A folder that stands for / to hwloc.
class Snapshot : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  void processor(int index, const std::string& node) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(index) + "/";
    write(folder + "topology/core_cpus", std::to_string(1 << index));
    write(folder + "topology/thread_siblings", std::to_string(1 << index));
    write(folder + "topology/package_cpus", node);
    write(folder + "topology/core_siblings", node);
    write(folder + "topology/physical_package_id", "0");
    write(folder + "topology/core_id", std::to_string(index));
  }
  void device(const std::string& id, const std::string& type, const std::string& numa) {
    const std::string folder = "sys/bus/pci/devices/" + id + "/";
    write(folder + "class", type);
    write(folder + "vendor", "0x10de");
    write(folder + "device", "0x2330");
    write(folder + "numa_node", numa);
    write(folder + "local_cpus", "00000000");
  }
  Result<Machine> read() {
    ::setenv("HWLOC_FSROOT", root_.c_str(), 1);
    ::setenv("HWLOC_THISSYSTEM", "0", 1);
    // Not what the processor says about itself, nor what plug-ins find.
    ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    return discover();
  }

  fs::path root_ =
      fs::path(::testing::TempDir()) / ("hwloc_snapshot_" + std::to_string(::getpid()));
};

// Covers a folder of sysfs by an empty one, for this process; false: that is not allowed here.
bool masked(const char* folder) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", folder, "tmpfs", 0, nullptr) == 0;
}

void expect_processors_where_masked(const char* folder) {
  in_child([folder] {
    if (!masked(folder)) GTEST_SKIP() << folder << " cannot be masked";
    ::testing::internal::CaptureStderr();
    const auto machine = discover();
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_EQ(machine.value().hosts[0].cpus.allowed, CpuSet::allowed());
    ASSERT_THAT(machine.value().cpus, SizeIs(1));
    EXPECT_FALSE(machine.value().cpus[0].affinity.value->empty());
  });
}

TEST(ThisMachine, HasProcessorsAlsoWhereSysfsIsMasked) { expect_processors_where_masked("/sys"); }

TEST(ThisMachine, HasProcessorsAlsoWhereOnlyItsNumaNodesAreMasked) {
  if (!fs::exists("/sys/devices/system/node")) GTEST_SKIP() << "there is none to be masked";
  expect_processors_where_masked("/sys/devices/system/node");
}

TEST_F(Snapshot, OfflineProcessorsAreNotThere) {
  in_child([this] {
    for (int i : {0, 2}) processor(i, "5");
    write("sys/devices/system/cpu/online", "0,2");
    write("sys/devices/system/cpu/possible", "0-3");
    const auto machine = read();
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_EQ(machine.value().hosts[0].cpus.processing_units, 2);
    EXPECT_EQ(machine.value().cpus[0].affinity.value->ranges(), "0,2");
  });
}

TEST_F(Snapshot, AFlatBusWithUnknownNodesKeepsItsDevices) {
  in_child([this] {
    for (int i : {0, 1}) processor(i, "3");
    write("sys/devices/system/cpu/online", "0-1");
    for (int i : {0, 1}) {
      const std::string folder = "sys/devices/system/node/node" + std::to_string(i) + "/";
      write(folder + "cpumap", std::to_string(1 << i));
      write(folder + "meminfo", "Node " + std::to_string(i) + " MemTotal: 1024 kB");
      write(folder + "distance", i == 0 ? "10 20" : "20 10");
    }
    write("sys/devices/system/node/online", "0-1");
    device("0000:00:05.0", "0x030200", "-1");
    device("0001:00:00.0", "0x020700", "-1");
    const auto machine = read();
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_THAT(machine.value().gpus, SizeIs(1));
    EXPECT_THAT(machine.value().nics, SizeIs(1));
    for (const Pci& pci : machine.value().pcis) {
      ASSERT_GE(pci.cpu, 0);
      EXPECT_TRUE(machine.value().cpus[static_cast<size_t>(pci.cpu)].numa.absent());
    }
    EXPECT_THAT(machine.value().hosts[0].cpus.latency, ElementsAre(10, 20, 20, 10));
  });
}

// What add_sysfs_infos() reads, and texts of kernels that do not know.
TEST_F(Snapshot, SpeedsComeFromSysfs) {
  write("class/net/eth7/speed", "25000");
  write("class/net/eth8/speed", "-1");
  write("class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  write("bus/pci/devices/0000:17:00.0/current_link_speed", "16.0 GT/s PCIe");
  write("bus/pci/devices/0000:17:00.0/current_link_width", "16");
  write("bus/pci/devices/0000:18:00.0/current_link_speed", "Unknown");
  write("bus/pci/devices/0000:18:00.0/current_link_width", "255");
  const auto topology = HwlocTopology::from_document(R"(<topology version="2.0">
  <object type="Machine" cpuset="0x1" nodeset="0x1">
    <object type="NUMANode" os_index="0" cpuset="0x1" nodeset="0x1"/><object type="PU" os_index="0" cpuset="0x1"/>
    <object type="PCIDev" pci_busid="0000:17:00.0" pci_type="0200 [15b3:101b] [0000:0000] 00"><object type="OSDev" name="eth7" osdev_type="2"/></object>
    <object type="PCIDev" pci_busid="0000:18:00.0" pci_type="0200 [15b3:101b] [0000:0000] 00"><object type="OSDev" name="eth8" osdev_type="2"/></object>
    <object type="PCIDev" pci_busid="0000:19:00.0" pci_type="0207 [15b3:101b] [0000:0000] 00"><object type="OSDev" name="mlx5_0" osdev_type="3"/></object>
  </object></topology>)",
                                                     "some.xml");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  add_sysfs_infos(topology.value().get(), root_.string());
  const Machine machine = machine_of(topology.value());
  EXPECT_EQ(machine.pcis[0].link_gts.value, 16);
  EXPECT_EQ(machine.pcis[0].link_width.value, 16);
  EXPECT_EQ(machine.pcis[1].link_gts.unreadable, "Unknown");
  EXPECT_EQ(machine.pcis[1].link_width.unreadable, "255");
  EXPECT_TRUE(machine.pcis[2].link_gts.absent());
  ASSERT_THAT(machine.nets, SizeIs(3));
  EXPECT_EQ(machine.nets[0].megabits.value, 25000);
  EXPECT_FALSE(machine.nets[1].megabits.given());
  EXPECT_EQ(machine.nets[2].megabits.value, 200000);
  EXPECT_EQ(machine.nets[2].port.value, 1);
}

}  // namespace
}  // namespace tessera::topology
