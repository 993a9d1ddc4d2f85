// Oddities that files of real machines had, one test per kind: read, with a warning, no failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/graph_of.h"
#include "topology/nccl_form.h"
#include "topology/nccl_xml.h"
#include "topology/support/files.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;
using testing::on_one_cpu;
using testing::parse_error;
using testing::parsed;
using testing::warnings_of;
using testing::warnings_with;

TEST(NcclFaults, ADeviceOfAnUnknownNumaNodeStaysOnTheHost) {
  const Machine m = parsed(R"(<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="106">
    <pci busid="0000:65:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="89" rank="0" gdr="0"/></pci>
    <pci busid="0000:66:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="89" rank="1" gdr="0"/></pci>
  </cpu>
  <cpu numaid="-1">
    <pci busid="0000:00:05.0" class="0x020000" link_speed="" link_width="0"><nic><net name="eth0" dev="0" speed="25000" port="0" guid="0x0" gdr="0"/></nic></pci>
  </cpu>
</system>)");
  EXPECT_EQ(m.hosts.size(), 1U);
  EXPECT_EQ(m.gpus.size(), 2U);
  ASSERT_EQ(m.nets.size(), 1U);
  EXPECT_EQ(m.cpus[1].numa.or_else(-1), -1);
  EXPECT_EQ(m.cpus[1].host, 0);
  EXPECT_TRUE(m.cpus[1].affinity.absent());
  EXPECT_EQ(warnings_with(m, "cpu numaid=\"-1\": no NUMA id"), 1);
}

TEST(NcclFaults, WhatCannotBeANumaIdIsAnUnknownNode) {
  for (const char* cpu : {"<cpu/>", "<cpu numaid=''/>", "<cpu numaid='-1'/>", "<cpu numaid='-2'/>",
                          "<cpu numaid='65535'/>", "<cpu numaid='4294967295'/>",
                          "<cpu numaid='node0'/>", "<cpu numaid='99999999999999999999'/>"}) {
    const Machine m = parsed(fmt::format("<system version='1'>{}</system>", cpu));
    ASSERT_EQ(m.cpus.size(), 1U) << cpu;
    EXPECT_LT(m.cpus[0].numa.or_else(-1), 0) << cpu;
    EXPECT_EQ(warnings_with(m, "unknown node"), 1) << cpu;
    EXPECT_EQ(difference(in_nccl_form(m), parsed(write_nccl_xml(m))), "") << cpu;
  }
  EXPECT_EQ(*parsed("<system version='1'><cpu numaid='255'/></system>").cpus[0].numa.value, 255);
}

TEST(NcclFaults, SeveralUnknownNodesAreKept) {
  const Machine m = parsed("<system version='1'><cpu numaid='-1'/><cpu numaid='-1'/></system>");
  EXPECT_EQ(m.cpus.size(), 2U);
  EXPECT_EQ(m.hosts.size(), 1U);
}

TEST(NcclFaults, AbsentUnreadableAndGivenAreThreeStates) {
  const Machine m =
      parsed(on_one_cpu("<pci busid='0000:01:00.0' link_speed='' link_width='0'/>"
                        "<pci busid='0000:02:00.0'/>"
                        "<pci busid='0000:03:00.0' link_speed='8 GT/s' link_width='4'/>"));
  EXPECT_EQ(m.pcis[0].link_gts.unreadable, "");
  EXPECT_FALSE(m.pcis[0].link_gts.absent());
  EXPECT_FALSE(m.pcis[0].link_gts.given());
  EXPECT_EQ(m.pcis[0].link_width.unreadable, "0");
  EXPECT_TRUE(m.pcis[1].link_gts.absent());
  EXPECT_TRUE(m.pcis[1].link_width.absent());
  EXPECT_EQ(m.pcis[2].link_gts.value, 8.0);
  EXPECT_EQ(m.pcis[2].link_width.value, 4);
  EXPECT_EQ(warnings_with(m, "pci 0000:01:00.0: link_width \"0\" cannot be read"), 1);
}

TEST(NcclFaults, LinkSpeedsAreReadInAllTheirForms) {
  const auto speed = [](const std::string& text) {
    return parsed(
               on_one_cpu("<pci busid='0000:01:00.0' class='0x010802' link_speed='" + text + "'/>"))
        .pcis[0]
        .link_gts;
  };
  for (const char* text : {"16 GT/s", "16.0 GT/s PCIe", "16 GT/s PCIe/s", "16GT/s", " 16.0  GT/s "})
    EXPECT_EQ(speed(text).value, 16.0) << text;
  EXPECT_EQ(speed("2.5 GT/s PCIe").value, 2.5);
  for (const char* text : {"Unknown", "16", "0 GT/s", "-8 GT/s", "nan GT/s", "inf GT/s", "GT/s",
                           "1e300 GT/s", "Unknown speed", "8,0 GT/s"})
    EXPECT_EQ(speed(text).unreadable, text);
}

TEST(NcclFaults, DevicesWithEqualBusIdsStaySeparate) {
  const Machine m = parsed(R"(<system version="1"><cpu numaid="0" affinity="ff" arch="arm64">
  <pci busid="0000:00:00.0" class="0x030000" link_speed="" link_width=""><gpu dev="0" sm="110" rank="0" gdr="0"/><gpu dev="1" sm="110" rank="1" gdr="0"/></pci>
  <pci busid="0001:00:00.0" class="0x030200" link_speed="" link_width=""><gpu dev="2" sm="90" rank="2" gdr="0"/></pci>
  <pci busid="0002:00:00.0" class="0x030200" link_speed="" link_width=""><gpu dev="3" sm="90" rank="3" gdr="0"/></pci>
  <pci busid="0002:00:00.0" class="0x030200" link_speed="" link_width=""><gpu dev="4" sm="90" rank="4" gdr="0"/></pci>
</cpu></system>)");
  ASSERT_EQ(m.gpus.size(), 5U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(m.gpus[static_cast<size_t>(i)].rank.value, i);
  EXPECT_EQ(m.pcis.size(), 4U);
  EXPECT_EQ(warnings_with(m, "pci 0002:00:00.0: this bus id occurs 2 times"), 1);
  EXPECT_EQ(warnings_with(m, "occurs"), 1);
}

TEST(NcclFaults, EqualBusIdsOnDifferentHostsAreNoOddity) {
  const std::string cpu = "<pci busid='0000:01:00.0' class='0x030200'/>";
  const Machine m = parsed("<system version='1'><cpu numaid='0' affinity='f' host_hash='0xa'>" +
                           cpu + "</cpu><cpu numaid='0' affinity='f' host_hash='0xb'>" + cpu +
                           "</cpu><cpu numaid='1' affinity='f0' host_hash='0xa'/></system>");
  EXPECT_EQ(m.hosts.size(), 2U);
  EXPECT_EQ(m.cpus[2].host, 0);
  EXPECT_EQ(warnings_of(m), "");
}

TEST(NcclFaults, AFewMissingHostHashesDoNotMakeAHost) {
  const Machine m = parsed(
      "<system version='1'><cpu numaid='0' affinity='f'/><cpu numaid='1' affinity='f' "
      "host_hash='0xa'/>"
      "<cpu numaid='2' affinity='f'/></system>");
  ASSERT_EQ(m.hosts.size(), 1U);
  EXPECT_EQ(m.hosts[0].id, "0xa");
  EXPECT_EQ(warnings_with(m, "host_hash"), 2);
}

TEST(NcclFaults, BusIdsAreTheSameInAllTheirForms) {
  const BusId id{0, 1, 0, 0};
  for (const char* text :
       {"01:00.0", "0000:01:00.0", "00000000:01:00.0", "0000:01:00:0", "1:0.0", " 0000:01:00.0 "})
    EXPECT_EQ(parse_bus_id(text), id) << text;
  EXPECT_EQ(parse_bus_id("ABCD:EF:1F.7"), (BusId{0xabcd, 0xef, 0x1f, 7}));
  EXPECT_EQ(parse_bus_id("10000:e1:00.0"), (BusId{0x10000, 0xe1, 0, 0}));
  for (const char* text :
       {"", "0", "0:0", ":01:00.0", "0000:01:00", "0000:01:20.0", "0000:01:00.8", "0000:100:00.0",
        "fffffff:ff:ff.0", "fffffff:ffff:ff", "0:0000:01:00.0", "0000:01:00.0x", "0000-01-00-0",
        "000000000:01:00.0", "0000:01:-1.0", "+1:00.0", "0x0:01:00.0", "0000::00.0"})
    EXPECT_EQ(parse_bus_id(text), std::nullopt) << text;
  EXPECT_EQ(to_string(BusId{0x10000, 0xe1, 0x1f, 7}), "10000:e1:1f.7");
}

TEST(NcclFaults, ADeviceWithoutReadableBusIdIsKept) {
  const Machine m =
      parsed(on_one_cpu("<pci busid='somewhere' class='0x030200'/><pci class='0x020000'/>"));
  ASSERT_EQ(m.pcis.size(), 2U);
  EXPECT_EQ(m.pcis[0].bus_id.unreadable, "somewhere");
  EXPECT_TRUE(m.pcis[1].bus_id.absent());
  EXPECT_EQ(warnings_with(m, "bus id"), 2);
}

TEST(NcclFaults, ALinkToItselfIsDropped) {
  const Machine m = parsed(on_one_cpu(
      "<pci busid='0001:00:00.0' class='0x030200'><gpu dev='0'><nvlink target='0001:00:00.0' "
      "count='12' tclass='0x030200'/></gpu></pci>"));
  EXPECT_THAT(m.peer_links, ::testing::IsEmpty());
  EXPECT_TRUE(m.peer_links_stated);
  EXPECT_EQ(warnings_of(m),
            "3: nvlink of 0001:00:00.0: its target is the device itself: the link is dropped\n");
}

TEST(NcclFaults, HiddenAndUnlistedSwitchesAreKeptAsTargets) {
  const Machine m = parsed(on_one_cpu(
      "<pci busid='01:00.0' class='0x030200'><gpu dev='0'>"
      "<nvlink target='fffffff:ffff:ff' count='18' tclass='0x068000'/>\n"
      "<nvlink target='0000:1a:00.0' count='4' tclass='0x068000'/>\n"
      "<nvlink target='0000:1a:00.0' count='4' tclass='0x068000'/>\n"
      "<xgmi target='0000:99:00.0' count='1' tclass='0x038000'/>\n<nvlink/></gpu></pci>"));
  ASSERT_EQ(m.peer_links.size(), 5U);
  EXPECT_EQ(m.peer_links[0].target_id.unreadable, "fffffff:ffff:ff");
  EXPECT_EQ(
      warnings_of(m),
      "3: link of 0000:01:00.0 to \"fffffff:ffff:ff\": a hidden switch, common to all such links\n"
      "4: link of 0000:01:00.0 to \"0000:1a:00.0\": a switch that is not listed, taken as "
      "existing\n"
      "6: link of 0000:01:00.0 to \"0000:99:00.0\": leads to a device that is not listed\n"
      "7: link of 0000:01:00.0: states no target\n");
}

TEST(NcclFaults, AOneSidedLinkIsKeptAsStated) {
  const Machine m =
      parsed(on_one_cpu("<pci busid='01:00.0' class='0x038000'><gpu dev='0'><xgmi "
                        "target='0000:02:00.0' count='4'/></gpu></pci>"
                        "<pci busid='02:00.0' class='0x038000'><gpu dev='1'/></pci>"));
  ASSERT_EQ(m.peer_links.size(), 1U);
  EXPECT_EQ(m.peer_links[0].count.value, 4);
  EXPECT_EQ(warnings_of(m), "");
}

TEST(NcclFaults, APortFasterThanAnyIsLimitedToItsPcieLinkIfThatIsKnown) {
  const char* nic = "<nic><net name='cxi0' speed='200000000'/></nic>";
  const Machine known = parsed(on_one_cpu(fmt::format(
      "<pci busid='01:00.0' class='0x020000' link_speed='16 GT/s' link_width='16'>{}</pci>", nic)));
  EXPECT_NEAR(*known.nets[0].megabits.value, 252062, 1);
  EXPECT_EQ(warnings_with(known, "limited to the PCIe link"), 1);
  const Machine unknown =
      parsed(on_one_cpu(fmt::format("<pci busid='01:00.0' class='0x020000'>{}</pci>", nic)));
  EXPECT_FALSE(unknown.nets[0].megabits.given());
  EXPECT_FALSE(unknown.nets[0].megabits.absent());
  EXPECT_EQ(warnings_with(unknown, "taken as unknown"), 1);
  for (const Machine& m : {known, unknown}) EXPECT_EQ(difference(m, parsed(write_nccl_xml(m))), "");
}

TEST(NcclFaults, PortsWithEqualGuidsStayPorts) {
  std::string body;
  for (const char* id : {"0009:03:00.0", "0009:03:00.1", "0009:03:00.2", "000a:03:00.0"})
    body += fmt::format(
        "<pci busid='{0}' class='0x020700' link_speed='32.0 GT/s PCIe' "
        "link_width='16'><nic><net name='p{0}' dev='0' speed='400000' port='1' "
        "guid='0xa' gdr='1'/></nic></pci>",
        id);
  const Machine m = parsed(on_one_cpu(body));
  EXPECT_EQ(m.nets.size(), 4U);
  EXPECT_EQ(warnings_of(m), "");
}

TEST(NcclFaults, KindsFollowFromClassAndChildren) {
  const auto kind = [](const std::string& pci) { return parsed(on_one_cpu(pci)).pcis[0].kind; };
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x030200'/>"), PciKind::kGpu);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x120000'/>"), PciKind::kGpu);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x0302'/>"), PciKind::kGpu);
  EXPECT_EQ(kind("<pci busid='01:00.0'><gpu/></pci>"), PciKind::kGpu);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x020700'/>"), PciKind::kNic);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x060000'><nic/></pci>"), PciKind::kNic);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x060400'/>"), PciKind::kBridge);
  EXPECT_EQ(kind("<pci busid='01:00.0'><pci busid='02:00.0'/></pci>"), PciKind::kBridge);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='0x010802'/>"), PciKind::kOther);
  EXPECT_EQ(kind("<pci busid='01:00.0'/>"), PciKind::kUnknown);
  EXPECT_EQ(kind("<pci busid='01:00.0' class='big'/>"), PciKind::kUnknown);
}

TEST(NcclFaults, ElementsWithoutTheirParentGetOne) {
  const Machine m = parsed(
      "<system version='1'>\n<pci busid='01:00.0'><gpu dev='0'/></pci>\n"
      "<gpu dev='1'/>\n<cpu numaid='0' affinity='f'><gpu dev='2'/>"
      "<net name='eth0'/></cpu>\n<nic/>\n</system>");
  EXPECT_EQ(m.gpus.size(), 3U);
  EXPECT_EQ(m.pcis.size(), 3U);
  EXPECT_EQ(m.nics.size(), 2U);
  EXPECT_EQ(m.nets.size(), 1U);
  EXPECT_EQ(m.cpus.size(), 3U);
  EXPECT_EQ(warnings_with(m, "outside of any cpu"), 3) << warnings_of(m);
  EXPECT_EQ(warnings_with(m, "outside of any pci"), 2);
  EXPECT_EQ(warnings_with(m, "outside of any nic"), 1);
  EXPECT_EQ(difference(in_nccl_form(m), parsed(write_nccl_xml(m))), "");
}

TEST(NcclFaults, ElementsThatFitNowhereAreLeftOut) {
  const Machine m = parsed(
      on_one_cpu("<cpu numaid='1'/><nvlink target='01:00.0'/><fan/><fan/>"
                 "<pci busid='01:00.0' class='0x020000'><nic><gpu dev='0'/></nic>text</pci>"));
  EXPECT_EQ(m.cpus.size(), 1U);
  EXPECT_THAT(m.gpus, ::testing::IsEmpty());
  EXPECT_THAT(m.peer_links, ::testing::IsEmpty());
  EXPECT_EQ(warnings_with(m, "left out"), 4) << warnings_of(m);
  EXPECT_EQ(warnings_with(m, "element \"fan\" is not known"), 1);
  EXPECT_EQ(warnings_with(m, "text \"text\" ignored"), 1);
}

TEST(NcclFaults, UnknownAttributesAreKept) {
  const std::string text =
      "<system version='1' name='a'><cpu numaid='0' affinity='f' x='1'><pci busid='01:00.0' "
      "y='&lt;&quot;'>"
      "<gpu dev='0' mlopart='-1'/><nic z=''><net keep='1' rail='2'/></nic></pci></cpu></system>";
  const Machine m = parsed(text);
  EXPECT_EQ(m.others, (Attributes{{"name", "a"}}));
  EXPECT_EQ(m.pcis[0].others, (Attributes{{"y", "<\""}}));
  EXPECT_EQ(m.gpus[0].others, (Attributes{{"mlopart", "-1"}}));
  EXPECT_EQ(m.nets[0].others, (Attributes{{"keep", "1"}, {"rail", "2"}}));
  EXPECT_THAT(write_nccl_xml(m), HasSubstr("y=\"&lt;&quot;\""));
  EXPECT_EQ(difference(m, parsed(write_nccl_xml(m))), "");
}

TEST(NcclFaults, OfAnAttributeGivenTwiceTheFirstCounts) {
  const Machine m = parsed(on_one_cpu("<pci busid='01:00.0' class='0x020000' class='0x030000'/>"));
  EXPECT_EQ(m.pcis[0].pci_class.value, 0x020000U);
  EXPECT_EQ(warnings_with(m, "attribute class is given twice"), 1);
}

TEST(NcclFaults, MasksMayHaveShortWordsAndNodesMayDifferInSize) {
  const Machine m = parsed(
      "<system version='1'><cpu numaid='0' affinity='fff,00000000'/>\n"
      "<cpu numaid='1' affinity='0000ffff'/>\n<cpu numaid='2' affinity='ffff0000'/></system>");
  EXPECT_EQ(m.cpus[0].affinity.value->ranges(), "32-43");
  EXPECT_EQ(warnings_of(m), "1: cpu numaid=0: 12 CPUs, other nodes have 16: taken as it is\n");
}

TEST(NcclFaults, NodesWithTheSameProcessorsOrTheSameIdAreNamed) {
  const Machine m = parsed(
      "<system version='1'><cpu numaid='0' affinity='f'/>\n<cpu numaid='1' affinity='000f'/>\n"
      "<cpu numaid='2' affinity='f0'/>\n<cpu numaid='2' affinity='f0'/></system>");
  EXPECT_EQ(warnings_of(m),
            "2: cpu numaid=1: the same affinity as numaid=0 of line 1: kept apart\n"
            "4: cpu numaid=2: the same id as in line 3: taken as one node\n");
  EXPECT_EQ(graph_of(m).of_kind(NodeKind::kCpu).size(), 3U);
}

TEST(NcclFaults, ARankThatNoJobHasIsAnErrorWithItsLine) {
  const std::string pci = "<pci busid='01:00.0' class='0x030200'>\n<gpu dev='0' rank='{}'/></pci>";
  EXPECT_EQ(parse_error(on_one_cpu(fmt::format(fmt::runtime(pci), 1'000'000'000))),
            "test.xml:4: element \"gpu\", attribute \"rank\": 1000000000 is more than any job has, "
            "1048575 at most");
  EXPECT_EQ(parse_error(on_one_cpu(fmt::format(fmt::runtime(pci), 4095))), "ok");
}

TEST(NcclFaults, AMaskThatCannotBeReadIsUnreadable) {
  for (const char* mask : {"", "xyz", "123456789", "ff,,ff", ",", "ff,", "0xff", "f f"}) {
    const Machine m =
        parsed(fmt::format("<system version='1'><cpu numaid='0' affinity='{}'/></system>", mask));
    EXPECT_EQ(m.cpus[0].affinity.unreadable, mask);
    EXPECT_EQ(warnings_with(m, "affinity"), 1);
  }
}

TEST(NcclFaults, NumbersOutOfRangeAreUnreadable) {
  const Machine m =
      parsed(on_one_cpu("<pci busid='01:00.0' class='0x1234567' link_width='99999999999'><gpu "
                        "dev='-1' rank='x' sm='1.5' gdr='2'/>"
                        "<nic><net speed='0' port='99999999999' guid='0x1ffffffffffffffff' "
                        "latency='-1' maxconn='1e5' coll=''/></nic></pci>"));
  EXPECT_EQ(warnings_with(m, "cannot be read"), 12) << warnings_of(m);
  EXPECT_EQ(difference(m, parsed(write_nccl_xml(m))), "");
}

TEST(NcclFaults, AnEmptySystemIsAnEmptyMachine) {
  const Machine m = parsed("<system version='1'/>");
  EXPECT_EQ(m.hosts.size(), 1U);
  EXPECT_EQ(warnings_with(m, "holds no cpu"), 1);
}

}  // namespace
}  // namespace tessera::topology
