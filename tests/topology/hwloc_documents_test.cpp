// Documents that are odd or broken: odd ones give a machine and warnings, broken ones one error
// with file, line and reason; hwloc prints nothing and is never handed what it cannot bear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "topology/hwloc_read.h"
#include "topology/hwloc_write.h"

namespace tessera::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kTwoUnits = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
    <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="5" local_memory="1024"/>
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3"/>
      <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
    </object>
    <object type="NUMANode" os_index="1" cpuset="0x3" nodeset="0x2" gp_index="6" subtype="GPUMemory"/>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 1 </indexes>
    <u64values length="12">10 21 21 10 </u64values>
  </distances2>
</topology>
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// All tests check that the terminal stays empty.
class HwlocDocuments : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
  }
  void TearDown() override {
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  }

  static Machine read(const std::string& text) {
    const auto topology = HwlocTopology::from_document(text, "some.xml");
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    if (!topology.ok()) return {};
    const Machine machine = machine_of(topology.value());
    const auto written = write_hwloc_xml(topology.value());
    EXPECT_TRUE(written.ok());
    const auto again = HwlocTopology::from_document(written.value(), "written.xml");
    EXPECT_TRUE(again.ok()) << again.status().message();
    if (!again.ok()) return machine;
    EXPECT_EQ(difference(machine, machine_of(again.value())), "");
    return machine;
  }
  static std::string error(const std::string& text) {
    const auto topology = HwlocTopology::from_document(text, "some.xml");
    EXPECT_FALSE(topology.ok()) << "a machine was read";
    return topology.status().message();
  }
};

TEST_F(HwlocDocuments, ASoundOneHasNoWarnings) {
  const Machine machine = read(kTwoUnits);
  EXPECT_THAT(machine.warnings, IsEmpty());
  EXPECT_EQ(machine.source, "some.xml");
  ASSERT_THAT(machine.cpus, SizeIs(1));
  EXPECT_EQ(machine.cpus[0].memory_bytes.value, 1024u);
  EXPECT_THAT(machine.hosts[0].cpus.latency, ElementsAre(10, 21, 21, 10));
  EXPECT_THAT(machine.hosts[0].cpus.memory_nodes, SizeIs(1));
}

TEST_F(HwlocDocuments, AUnitOutsideItsPackageIsLeftOutAndNamed) {
  const Machine machine =
      read(with(kTwoUnits, R"(cpuset="0x2" complete_cpuset="0x2")", R"(cpuset="0x4")"));
  EXPECT_EQ(machine.hosts[0].cpus.processing_units, 1);
  EXPECT_EQ(machine.hosts[0].cpus.allowed.ranges(), "0");
  EXPECT_EQ(machine.cpus[0].affinity.value->ranges(), "0");
  ASSERT_THAT(machine.warnings, SizeIs(2));
  EXPECT_EQ(machine.warnings[0].line, 8);
  EXPECT_THAT(machine.warnings[0].text, AllOf(HasSubstr("PU 1"), HasSubstr("left out")));
  EXPECT_THAT(machine.warnings[1].text, HasSubstr("the allowed set names processors 1"));
}

TEST_F(HwlocDocuments, AMatrixWithTooFewValuesIsAnError) {
  const std::string text =
      with(kTwoUnits, R"(<u64values length="12">10 21 21 10 )", R"(<u64values length="6">10 21 )");
  EXPECT_THAT(error(text),
              AllOf(StartsWith("some.xml:12: "), HasSubstr("2 values"), HasSubstr("need 2 and 4")));
}

TEST_F(HwlocDocuments, AMatrixOfAMillionObjectsIsAnError) {
  EXPECT_THAT(error(with(kTwoUnits, R"(nbobjs="2")", R"(nbobjs="1000000")")), HasSubstr("nbobjs"));
  EXPECT_THAT(error(with(kTwoUnits, R"(nbobjs="2")", R"(nbobjs="-2")")), HasSubstr("nbobjs"));
  EXPECT_THAT(error(with(kTwoUnits, R"(nbobjs="2")", R"(nbobjs="0")")), HasSubstr("nbobjs"));
}

TEST_F(HwlocDocuments, AMatrixThatNamesAnAbsentObjectIsAnError) {
  EXPECT_THAT(error(with(kTwoUnits, ">0 1 <", ">0 7 <")), HasSubstr("names NUMANode \"7\""));
  EXPECT_THAT(error(with(kTwoUnits, ">0 1 <", ">0 x <")), HasSubstr("names NUMANode \"x\""));
}

TEST_F(HwlocDocuments, AWrongLengthIsAnError) {
  EXPECT_THAT(
      error(with(kTwoUnits, R"(<indexes length="4")", R"(<indexes length="400")")),
      AllOf(StartsWith("some.xml:13: "), HasSubstr("has 4 characters"), HasSubstr("\"400\"")));
}

// A package of 0-1 and one of 2-3; memory of 0,2 and of 1,3.
TEST_F(HwlocDocuments, NodesThatCrossPackagesKeepTheirProcessors) {
  const Machine machine = read(R"(<topology version="2.0">
  <object type="Machine" cpuset="0xf" nodeset="0x3">
    <object type="NUMANode" os_index="0" cpuset="0x5" nodeset="0x1"/>
    <object type="NUMANode" os_index="1" cpuset="0xa" nodeset="0x2"/>
    <object type="Package" os_index="0" cpuset="0x3" nodeset="0x3">
      <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/>
    </object>
    <object type="Package" os_index="1" cpuset="0xc" nodeset="0x3">
      <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/>
    </object>
  </object></topology>)");
  ASSERT_THAT(machine.cpus, SizeIs(2));
  EXPECT_EQ(machine.cpus[0].affinity.value->ranges(), "0,2");
  EXPECT_EQ(machine.cpus[1].affinity.value->ranges(), "1,3");
  EXPECT_EQ(machine.hosts[0].cpus.packages[1].ranges(), "2-3");
  ASSERT_THAT(machine.warnings, SizeIs(2));
  EXPECT_THAT(machine.warnings[0].text, HasSubstr("NUMANode 0 has processors 0,2"));
}

TEST_F(HwlocDocuments, AnOldRootWithoutNodesetsHasTheNodesBelow) {
  const Machine machine = read(R"(<topology>
  <object type="Machine" os_index="0" cpuset="0x3">
    <object type="NUMANode" os_index="0" cpuset="0x1" nodeset="0x1">
      <object type="PU" os_index="0" cpuset="0x1"/>
    </object>
    <object type="NUMANode" os_index="1" cpuset="0x2" nodeset="0x2">
      <object type="PU" os_index="1" cpuset="0x2"/>
    </object>
  </object></topology>)");
  ASSERT_THAT(machine.cpus, SizeIs(2));
  EXPECT_EQ(machine.cpus[0].affinity.value->ranges(), "0");
  EXPECT_EQ(machine.cpus[1].affinity.value->ranges(), "1");
}

TEST_F(HwlocDocuments, SchemasOfTheFutureAreAnErrorWithTheirVersion) {
  for (const char* version : {"3.0", "9.9", "0.9"})
    EXPECT_THAT(
        error(with(kTwoUnits, "version=\"2.0\"", std::string("version=\"") + version + "\"")),
        AllOf(StartsWith("some.xml:3: "), HasSubstr(std::string("version ") + version)));
  for (const char* version : {"", "2", "two.0", "2.-1", "99999999999999999999.0"})
    EXPECT_THAT(
        error(with(kTwoUnits, "version=\"2.0\"", std::string("version=\"") + version + "\"")),
        HasSubstr("version"));
}

TEST_F(HwlocDocuments, ALaterMinorSchemaIsRead) {
  EXPECT_THAT(read(with(kTwoUnits, "version=\"2.0\"", "version=\"2.4\"")).cpus, SizeIs(1));
}

// No element of that name existed when this was written.
TEST_F(HwlocDocuments, UnknownElementsAndAttributesAreIgnored) {
  const std::string text =
      with(with(kTwoUnits, "  <distances2", "<quantum kind=\"3\"/><distances2"),
           "os_index=\"1\" cpuset=\"0x2\"", "spin=\"up\" os_index=\"1\" cpuset=\"0x2\"");
  EXPECT_EQ(read(text).hosts[0].cpus.processing_units, 2);
}

// Without domain and bus range hwloc took memory it had not written for them.
TEST_F(HwlocDocuments, APciLocalityOfProcessorsOnlyIsIgnored) {
  EXPECT_THAT(
      read(with(kTwoUnits, "  <distances2", "<pci_locality cpuset=\"0x1\"/><distances2")).warnings,
      IsEmpty());
}

TEST_F(HwlocDocuments, WhatIsNoTopologyIsAnErrorThatSaysWhat) {
  EXPECT_THAT(error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error(" \r\n\t "), HasSubstr("the file is empty"));
  EXPECT_THAT(error("0000:17:00.0"), StartsWith("some.xml:1: not well-formed XML"));
  EXPECT_THAT(error(std::string(100, '\0')), StartsWith("some.xml:1: "));
  EXPECT_THAT(error("<system version=\"1\"/>"), HasSubstr("a <system>, not a <topology>"));
  EXPECT_THAT(error("<topology version=\"2.0\"/>"), HasSubstr("has no object"));
  EXPECT_THAT(error("<topology><object type=\"PU\" os_index=\"0\" cpuset=\"0x1\"/></topology>"),
              HasSubstr("not a Machine"));
  EXPECT_THAT(error("<topology><object type=\"Machine\" cpuset=\"0x1\"/></topology>"),
              HasSubstr("no processing unit"));
}

TEST_F(HwlocDocuments, ValuesThatHwlocWouldMisreadAreErrors) {
  EXPECT_THAT(error(with(kTwoUnits, R"(os_index="1" cpuset="0x2")",
                         R"(os_index="4294967294" cpuset="0x2")")),
              HasSubstr("os_index"));
  EXPECT_THAT(
      error(with(kTwoUnits, R"(os_index="1" cpuset="0x2")", R"(os_index="0" cpuset="0x2")")),
      HasSubstr("PU 0 occurs twice"));
  EXPECT_THAT(error(with(kTwoUnits, R"(cpuset="0x2")", R"(cpuset="two")")),
              HasSubstr("cpuset=\"two\" is no set"));
  EXPECT_THAT(
      error(with(kTwoUnits, R"(cpuset="0x2")", "cpuset=\"0x1" + std::string(5000, ',') + "\"")),
      HasSubstr("is no set"));
  EXPECT_THAT(error(with(kTwoUnits, R"(local_memory="1024")", R"(local_memory="lots")")),
              HasSubstr("local_memory=\"lots\""));
  EXPECT_THAT(error(with(kTwoUnits, R"(type="PU")", R"(type="Qubit")")),
              HasSubstr("unknown type of object \"Qubit\""));
}

std::string io(const std::string& objects) {
  return with(kTwoUnits, "    <object type=\"NUMANode\" os_index=\"1\"",
              objects + "<object type=\"NUMANode\" os_index=\"1\"");
}

TEST_F(HwlocDocuments, DevicesNeedTheirIds) {
  constexpr const char* kType = R"(pci_type="0302 [10de:1db6] [10de:0000] a1")";
  EXPECT_THAT(error(io(R"(<object type="PCIDev" pci_type="0302 [10de:1db6] [10de:0000] a1"/>)")),
              HasSubstr("has no pci_busid"));
  EXPECT_THAT(error(io(std::string(R"(<object type="PCIDev" pci_busid="17:00" )") + kType + "/>")),
              HasSubstr("pci_busid=\"17:00\""));
  EXPECT_THAT(error(io(R"(<object type="Bridge" bridge_type="0-7" bridge_pci="0000:[00-ff]"/>)")),
              HasSubstr("bridge_type=\"0-7\""));
  EXPECT_THAT(error(io(R"(<object type="Bridge" bridge_type="0-1"/>)")),
              HasSubstr("has no bridge_pci"));
  EXPECT_THAT(error(io(R"(<object type="OSDev" name="x"/>)")), HasSubstr("has no osdev_type"));
  EXPECT_THAT(error(io(std::string(R"(<object type="PCIDev" pci_busid="0000:17:00.0" )") + kType +
                       R"(><object type="PU" os_index="2" cpuset="0x4"/></object>)")),
              HasSubstr("cannot be below PCIDev"));
}

TEST_F(HwlocDocuments, OneGpuHoweverManyDevices) {
  const Machine machine =
      read(io(R"xml(<object type="Bridge" bridge_type="0-1" bridge_pci="0001:[00-ff]">
    <object type="PCIDev" pci_busid="0001:17:00.0" pci_type="0302 [10de:1db6] [10de:0000] a1" pci_link_speed="15.753846">
      <object type="OSDev" name="nvml1" osdev_type="1"/><object type="OSDev" name="cuda0" osdev_type="5"/>
    </object>
    <object type="PCIDev" pci_busid="0001:18:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41"/>
    <object type="PCIDev" pci_busid="0001:19:00.0" pci_type="0300 [102b:0522] [0000:0000] 41"/>
    <object type="PCIDev" pci_busid="0001:1a:00.0" pci_type="0300 [1002:515e] [0000:0000] 41"/>
    <object type="PCIDev" pci_busid="0001:1b:00.0" pci_type="0300 [1234:1111] [0000:0000] 41"/>
    <object type="PCIDev" pci_busid="0001:1c:00.0" pci_type="1200 [1002:74a1] [0000:0000] 41"/>
    <object type="PCIDev" pci_busid="0001:1d:00.0" pci_type="0207 [15b3:101b] [0000:0000] 00">
      <object type="OSDev" name="ib0" osdev_type="2"/>
      <object type="OSDev" name="mlx5_0" osdev_type="3"><info name="NodeGUID" value="0c42:a103:0065:bafe"/><info name="Port1State" value="4"/><info name="Port1Rate" value="200 Gb/sec (4X HDR)"/><info name="Port2State" value="1"/></object>
    </object></object>)xml"));
  ASSERT_THAT(machine.pcis, SizeIs(8));
  EXPECT_EQ(machine.pcis[0].kind, PciKind::kBridge);
  EXPECT_TRUE(machine.pcis[0].bus_id.absent()) << "a host bridge has none";
  EXPECT_EQ(machine.pcis[1].parent, 0);
  EXPECT_EQ(machine.pcis[1].cpu, 0);
  EXPECT_EQ(machine.pcis[1].vendor, "0x10de");
  ASSERT_THAT(machine.gpus, SizeIs(2));
  EXPECT_THAT(machine.gpus[0].names, ElementsAre("nvml1", "cuda0"));
  EXPECT_EQ(machine.gpus[0].device.value, 1);
  EXPECT_EQ(machine.pcis[static_cast<size_t>(machine.gpus[1].pci)].pci_class.value, 0x120000u);
  ASSERT_THAT(machine.nics, SizeIs(1));
  ASSERT_THAT(machine.nets, SizeIs(2));
  EXPECT_EQ(machine.nets[0].megabits.value, 200000);
  EXPECT_EQ(machine.nets[0].guid.value, 0x0c42a1030065bafeu);
  EXPECT_EQ(machine.nets[1].port.value, 2);
  EXPECT_TRUE(machine.nets[1].megabits.absent());
}

// sysfs masked, or NUMA node -1: the device hangs below the machine, which has several nodes.
TEST_F(HwlocDocuments, ADeviceOfNoNodeHasACpuWithoutNumber) {
  const std::string device =
      R"(<object type="PCIDev" pci_busid="0000:17:00.0" pci_type="0302 [10de:1db6] [10de:0000] a1"/>
    <object type="OSDev" name="eth0" osdev_type="2"/><object type="OSDev" name="cuda0" osdev_type="5"/>)";
  const Machine machine = read(R"(<topology version="2.0">
  <object type="Machine" cpuset="0x3" nodeset="0x3">
    <object type="Package" os_index="0" cpuset="0x1" nodeset="0x1"><object type="NUMANode" os_index="0" cpuset="0x1" nodeset="0x1"/><object type="PU" os_index="0" cpuset="0x1"/></object>
    <object type="Package" os_index="1" cpuset="0x2" nodeset="0x2"><object type="NUMANode" os_index="1" cpuset="0x2" nodeset="0x2"/><object type="PU" os_index="1" cpuset="0x2"/></object>)" +
                               device + "</object></topology>");
  ASSERT_THAT(machine.cpus, SizeIs(3));
  EXPECT_TRUE(machine.cpus[2].numa.absent());
  EXPECT_EQ(machine.cpus[2].affinity.value->ranges(), "0-1");
  ASSERT_THAT(machine.pcis, SizeIs(1));
  EXPECT_EQ(machine.pcis[0].cpu, 2);
  EXPECT_EQ(machine.pcis[0].parent, -1);
  ASSERT_THAT(machine.gpus, SizeIs(2)) << "one has no place on the bus";
  EXPECT_EQ(machine.gpus[1].pci, -1);
  ASSERT_THAT(machine.nics, SizeIs(1));
  EXPECT_EQ(machine.nics[0].pci, -1);
  EXPECT_EQ(machine.nics[0].cpu, 2);
}

TEST_F(HwlocDocuments, PairsThatAreTwoHopsApartHaveNoLink) {
  std::string gpus, matrices;
  for (int i = 0; i < 3; ++i)
    gpus +=
        "<object type=\"PCIDev\" pci_busid=\"0000:0" + std::to_string(i) +
        ":00.0\" pci_type=\"0380 [1002:7408] [1002:0b0c] 00\"><object type=\"OSDev\" name=\"rsmi" +
        std::to_string(i) + "\" osdev_type=\"1\" gp_index=\"10" + std::to_string(i) +
        "\"/></object>";
  const auto matrix = [](const char* name, const std::string& values) {
    return std::string("<distances2 type=\"OSDev\" nbobjs=\"3\" kind=\"9\" name=\"") + name +
           "\" indexing=\"gp\"><indexes length=\"12\">100 101 102 </indexes><u64values length=\"" +
           std::to_string(values.size()) + "\">" + values + "</u64values></distances2>";
  };
  matrices = matrix("XGMIBandwidth", "0 100 100 100 0 50 100 50 0 ") +
             matrix("XGMIHops", "0 1 2 1 0 1 2 1 0 ");
  const Machine machine = read(with(io(gpus), "</topology>", matrices + "</topology>"));
  std::vector<std::string> links;
  for (const PeerLink& link : machine.peer_links)
    links.push_back(std::to_string(link.gpu) + ">" + link.target);
  EXPECT_THAT(links,
              ElementsAre("0>0000:01:00.0", "1>0000:00:00.0", "1>0000:02:00.0", "2>0000:01:00.0"));
}

// The order that hwloc reports on the terminal.
TEST_F(HwlocDocuments, UnitsOutOfOrderAreSorted) {
  const std::string text =
      with(with(with(kTwoUnits, R"(os_index="0" cpuset="0x1")", R"(os_index="7" cpuset="0x80")"),
                R"(complete_cpuset="0x1")", ""),
           R"(cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3")", R"(cpuset="0x82")");
  const Machine machine =
      read(with(text, R"(cpuset="0x3" complete_cpuset="0x3")", R"(cpuset="0x82")"));
  EXPECT_EQ(machine.hosts[0].cpus.packages[0].ranges(), "1,7");
}

TEST_F(HwlocDocuments, DeepAndWideOnesEnd) {
  std::string deep =
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\" nodeset=\"0x1\">";
  for (int i = 0; i < 2000; ++i) deep += "<object type=\"Group\" cpuset=\"0x1\">";
  EXPECT_THAT(error(deep), HasSubstr("not well-formed"));
  for (int i = 0; i < 2000; ++i) deep += "</object>";
  EXPECT_THAT(error(deep + "</object></topology>"), HasSubstr("objects nest deeper than 100"));

  std::string wide;
  for (int i = 0; i < 10'000; ++i)
    wide += "<object type=\"PCIDev\" pci_busid=\"" + std::to_string(i) +
            ":00:00.0\" pci_type=\"0280 [1234:5678] [0000:0000] 00\"/>";
  EXPECT_THAT(read(io(wide)).nics, SizeIs(10'000));
  EXPECT_THAT(read(with(kTwoUnits, "os_index=\"1\" cpuset",
                        "name=\"" + std::string(1 << 20, 'x') + "\" os_index=\"1\" cpuset"))
                  .cpus,
              SizeIs(1));
}

TEST_F(HwlocDocuments, TextsOutsideOfAsciiDoNoHarm) {
  const Machine machine = read(
      with(kTwoUnits, "gp_index=\"1\">",
           "gp_index=\"1\"><info name=\"HostName\" value=\"b\xC3\xBC\xFFro &amp; &lt;\t&#1;>\"/>"));
  EXPECT_EQ(machine.hosts[0].name, "b???ro & < ?>");
}

class HwlocPaths : public HwlocDocuments {
 protected:
  std::filesystem::path path_ = std::filesystem::path(::testing::TempDir()) /
                                ("hwloc_documents_" + std::to_string(::getpid()));
  void TearDown() override {
    std::filesystem::remove_all(path_);
    HwlocDocuments::TearDown();
  }
};

TEST_F(HwlocPaths, AbsentOnesFoldersAndOthersAreErrorsThatNameThem) {
  const std::string name = path_.string();
  EXPECT_THAT(read_hwloc_xml(name).status().message(),
              AllOf(StartsWith(name), HasSubstr("No such file")));
  std::filesystem::create_directory(path_);
  EXPECT_THAT(read_hwloc_xml(name).status().message(),
              AllOf(StartsWith(name), HasSubstr("Is a directory")));
  std::filesystem::remove(path_);
  std::ofstream(path_) << "";
  EXPECT_EQ(read_hwloc_xml(name).status().message(), name + ": the file is empty");
  std::ofstream(path_) << kTwoUnits;
  const auto machine = read_hwloc_xml(name);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine.value().source, name);
}

}  // namespace
}  // namespace tessera::topology
