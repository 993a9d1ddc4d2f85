// Descriptions that ranks of one host give make one machine, in any order.
#include "topology/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "topology/nccl_xml.h"
#include "topology/support/files.h"

namespace tessera::topology {
namespace {

using testing::on_one_cpu;
using testing::parsed;
using testing::warnings_of;
using testing::warnings_with;

Machine merged(std::vector<Machine> machines) { return merge(machines); }

// What rank `own` of a host with 8 GPUs and 32 ports says: only its own GPU has a rank.
std::string rank_description(int own, int bridges = 8) {
  std::string body;
  for (int i = 0; i < bridges; ++i) {
    body += fmt::format(
        "<pci busid='{0:04x}:01:00.0' class='0x060400'><pci busid='{0:04x}:02:00.0' "
        "class='0x030200'><gpu dev='{0}' sm='90'{1} gdr='{2}'/></pci>",
        i, i == own ? fmt::format(" rank='{}'", own) : "", own == 3 ? 0 : 1);
    for (int k = 0; k < 4; ++k)
      body += fmt::format(
          "<pci busid='{:04x}:03:0{}.0' class='0x020000'><nic><net name='mlx5_{}' "
          "dev='{}' port='1' speed='{}'/></nic></pci>",
          i, k, 4 * i + k, 4 * i + k, own == 2 ? 200000 : 400000);
    body += "</pci>";
  }
  return on_one_cpu(body);
}

size_t elements(const Machine& m) {
  return 1 + m.cpus.size() + m.pcis.size() + m.gpus.size() + m.nics.size() + m.nets.size() +
         m.peer_links.size();
}

TEST(Merge, EightRanksGiveOneMachineWithAllRanksInAnyOrder) {
  std::vector<Machine> machines;
  for (int rank = 0; rank < 8; ++rank) machines.push_back(parsed(rank_description(rank)));
  const Machine first = merge(machines);
  EXPECT_EQ(elements(first), elements(machines[0]));
  std::set<int> ranks;
  for (const Gpu& gpu : first.gpus) {
    ranks.insert(gpu.rank.or_else(-1));
    EXPECT_EQ(gpu.direct_rdma.value, false);
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(first.nets.size(), 32U);
  for (const Net& net : first.nets) EXPECT_EQ(net.megabits.value, 200000);
  EXPECT_EQ(warnings_with(first, "differ about its direct RDMA, taken as false"), 8);
  EXPECT_EQ(warnings_with(first, "differ about its speed, taken as 200000"), 32)
      << warnings_of(first);
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(machines.begin(), machines.end(), random);
    const Machine again = merge(machines);
    ASSERT_EQ(difference(first, again), "");
    EXPECT_EQ(warnings_of(first), warnings_of(again));
  }
}

TEST(Merge, IsIdempotentAndMayGoStepByStep) {
  std::vector<Machine> machines;
  for (int rank = 0; rank < 4; ++rank) machines.push_back(parsed(rank_description(rank)));
  const Machine all = merge(machines);
  EXPECT_EQ(difference(all, merged({all})), "");
  EXPECT_EQ(difference(all, merged({all, all, machines[2]})), "");
  EXPECT_EQ(difference(all, merged({merged({machines[3], machines[1]}),
                                    merged({machines[0], machines[2]})})),
            "");
}

TEST(Merge, AMergedMachineReadsBackAsWritten) {
  const Machine all = merged({parsed(rank_description(1)), parsed(rank_description(2))});
  EXPECT_EQ(difference(all, parsed(write_nccl_xml(all))), "");
}

TEST(Merge, FilesOfRealMachinesMergeWithThemselvesToAsManyParts) {
  if (testing::shared_folder().empty()) GTEST_SKIP() << "no files of real machines here";
  for (const auto& path : testing::shared_nccl_files()) {
    const Machine m = std::move(read_nccl_xml(path).value());
    const Machine one = merged({m});
    EXPECT_EQ(elements(one), elements(m)) << path;
    EXPECT_EQ(difference(one, merged({m, m, one})), "") << path;
    EXPECT_EQ(difference(one, parsed(write_nccl_xml(one))), "") << path;
  }
}

// Any part of a description may be missing in another; what both have is one.
TEST(Merge, RandomPartsOfOneMachineMergeInAnyOrder) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::vector<Machine> machines;
    const Machine whole = testing::random_machine(seed);
    for (int i = 0; i < 4; ++i) {
      Machine part = whole;
      for (Gpu& gpu : part.gpus)
        if (random() % 3 == 0) gpu.rank = {static_cast<int>(random() % 9), std::nullopt};
      for (Pci& pci : part.pcis) {
        if (random() % 3 == 0) pci.link_width = {};
        if (random() % 5 == 0)
          pci.bus_id = {BusId{0, static_cast<uint8_t>(random() % 3), 0, 0}, std::nullopt};
        if (random() % 9 == 0) pci.parent = -1;
      }
      machines.push_back(part);
    }
    const Machine first = merge(machines);
    for (int round = 0; round < 4; ++round) {
      std::shuffle(machines.begin(), machines.end(), random);
      ASSERT_EQ(difference(first, merge(machines)), "") << seed;
    }
  }
}

TEST(Merge, EqualBusIdsStaySeparateIfWhatIsBelowDiffers) {
  const auto pair = [](int i) {
    return fmt::format(
        "<pci busid='c5:00.0' class='0x060400'><pci busid='{0:04x}:02:00.0' "
        "class='0x030200'><gpu dev='{0}'/></pci></pci>",
        i);
  };
  const Machine all = parsed(on_one_cpu(pair(0) + pair(1) + pair(2) + pair(3)));
  const Machine some = parsed(on_one_cpu(pair(3) + pair(1)));
  const Machine one = parsed(on_one_cpu(pair(2)));
  const Machine m = merged({one, all, some});
  EXPECT_EQ(m.pcis.size(), 8U);
  EXPECT_EQ(m.gpus.size(), 4U);
  EXPECT_EQ(difference(m, merged({some, one, all})), "");
}

TEST(Merge, GpusOfOneBusIdAreToldApartByDeviceIndex) {
  const auto gpu = [](const char* attributes) {
    return parsed(on_one_cpu(
        fmt::format("<pci busid='01:00.0' class='0x030200'><gpu {}/></pci>", attributes)));
  };
  const Machine m = merged({gpu("dev='1' rank='1'"), gpu("dev='0' rank='0'"), gpu("sm='90'")});
  ASSERT_EQ(m.gpus.size(), 2U);
  EXPECT_EQ(m.gpus[0].rank.value, 0);
  EXPECT_EQ(m.gpus[0].compute_capability.value, 90);
  EXPECT_EQ(m.gpus[1].rank.value, 1);
}

TEST(Merge, PortsOfACardAreToldApartByNameAndPort) {
  const auto nic = [](const char* nets) {
    return parsed(on_one_cpu(fmt::format("<pci busid='01:00.0'><nic>{}</nic></pci>", nets)));
  };
  const Machine m = merged({nic("<net name='a' port='1'/>"), nic("<net name='a' port='2'/>"),
                            nic("<net name='b' port='1'/><net name='a' port='1'/>")});
  EXPECT_EQ(m.nics.size(), 1U);
  EXPECT_EQ(m.nets.size(), 3U);
}

TEST(Merge, NicsWithoutPositionAreOneIfTheyShareAPort) {
  const auto nic = [](const char* nets) {
    return parsed(on_one_cpu(fmt::format("<nic>{}</nic>", nets)));
  };
  const Machine m = merged({nic("<net name='eth0' port='0'/>"), nic("<net name='eth1' port='0'/>"),
                            nic("<net name='eth0' port='0'/><net name='eth2' port='0'/>")});
  EXPECT_EQ(m.nics.size(), 2U);
  EXPECT_EQ(m.nets.size(), 3U);
}

TEST(Merge, TheSmallerLinkCountHolds) {
  const auto link = [](int count, const char* target) {
    return parsed(on_one_cpu(
        fmt::format("<pci busid='01:00.0' class='0x030200'><gpu dev='0'><nvlink target='{}' "
                    "count='{}' tclass='0x068000'/></gpu></pci>",
                    target, count)));
  };
  const Machine m = merged({link(4, "0000:A0:00.0"), link(2, "0000:a0:00.0")});
  ASSERT_EQ(m.peer_links.size(), 1U);
  EXPECT_EQ(m.peer_links[0].count.value, 2);
  EXPECT_EQ(warnings_with(m, "differ about its count, taken as 2"), 1);
  EXPECT_EQ(warnings_with(m, "target, taken"), 0);
}

TEST(Merge, GivenBeatsUnreadableBeatsAbsent) {
  const auto width = [](const char* text) {
    return parsed(on_one_cpu(fmt::format("<pci busid='01:00.0' class='0x030200'{}/>", text)));
  };
  const Machine absent = width(""), unreadable = width(" link_width='0'"),
                given = width(" link_width='16'");
  EXPECT_EQ(merged({absent, unreadable}).pcis[0].link_width.unreadable, "0");
  for (const auto& order : {std::vector{absent, unreadable, given}, {given, unreadable, absent}})
    EXPECT_EQ(merge(order).pcis[0].link_width.value, 16);
  EXPECT_EQ(warnings_with(merged({unreadable, given}), "differ"), 0);
}

TEST(Merge, AKnownNumaNodeAndABridgeBeatNone) {
  const Machine flat = parsed(
      "<system version='1'><cpu numaid='-1'><pci busid='02:00.0' "
      "class='0x030200'/></cpu><cpu numaid='-1'/></system>");
  const Machine full =
      parsed(on_one_cpu("<pci busid='01:00.0' class='0x060400'>"
                        "<pci busid='02:00.0' class='0x030200'/></pci>"));
  for (const Machine& m : {merged({flat, full}), merged({full, flat})}) {
    ASSERT_EQ(m.pcis.size(), 2U);
    EXPECT_EQ(m.pcis[1].parent, 0);
    EXPECT_EQ(m.cpus.size(), 2U);
    EXPECT_EQ(m.cpus[static_cast<size_t>(m.pcis[1].cpu)].numa.value, 0);
    EXPECT_EQ(warnings_with(m, "differ about its NUMA node"), 1);
  }
}

TEST(Merge, BridgesThatAreAboveEachOtherEndInATree) {
  const auto chain = [](std::vector<int> ids) {
    std::string text, end;
    for (const int id : ids) {
      text += fmt::format("<pci busid='{:02x}:00.0' class='0x060400'>", id);
      end += "</pci>";
    }
    return parsed(on_one_cpu(text + end));
  };
  const std::vector<Machine> machines = {chain({1, 2, 3, 4}), chain({4, 3, 2, 1}),
                                         chain({3, 1, 4})};
  const Machine m = merge(machines);
  EXPECT_EQ(m.pcis.size(), 4U);
  EXPECT_GE(warnings_with(m, "differ about its position"), 1);
  for (size_t i = 0; i < m.pcis.size(); ++i) EXPECT_LT(m.pcis[i].parent, static_cast<int>(i));
  EXPECT_EQ(difference(m, merged({machines[2], machines[1], machines[0]})), "");
}

TEST(Merge, DescriptionsOfDifferentHostsStaySeparate) {
  const auto host = [](const char* hash) {
    return parsed(
        fmt::format("<system version='1'><cpu numaid='0' affinity='f'{}><pci "
                    "busid='01:00.0' class='0x030200'><gpu dev='0'/></pci></cpu></system>",
                    hash));
  };
  EXPECT_EQ(merged({host(" host_hash='0xa'"), host(" host_hash='0xb'")}).gpus.size(), 2U);
  // Who states no host is on the only one.
  EXPECT_EQ(merged({host(" host_hash='0xa'"), host("")}).gpus.size(), 1U);
}

TEST(Merge, NothingGivesAnEmptyMachine) { EXPECT_EQ(merge({}).pcis.size(), 0U); }

TEST(Merge, LargeDescriptionsLoseNothing) {
  std::vector<Machine> machines;
  for (int rank = 0; rank < 4; ++rank) machines.push_back(parsed(rank_description(rank, 2000)));
  EXPECT_EQ(merge(machines).nets.size(), 8000U);
}

}  // namespace
}  // namespace tessera::topology
