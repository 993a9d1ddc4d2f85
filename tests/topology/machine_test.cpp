// CPU sets, and the comparison of machines.
#include "topology/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "topology/support/files.h"

namespace tessera::topology {
namespace {

using ::testing::ElementsAre;

CpuSet set_of(std::initializer_list<int> processors) {
  CpuSet set;
  for (const int processor : processors) set.add(processor);
  return set;
}

TEST(CpuSet, ReadsMasksWithTheHighestWordFirst) {
  EXPECT_THAT(CpuSet::parse("f")->list(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CpuSet::parse("1,00000000,80000000")->list(), ElementsAre(31, 64));
  EXPECT_EQ(CpuSet::parse("ffffffff,ffffffff,ffffffff")->count(), 96);
  EXPECT_TRUE(CpuSet::parse("0")->empty());
  EXPECT_EQ(CpuSet::parse(" 00FF\n")->ranges(), "0-7");
}

TEST(CpuSet, RefusesWhatIsNoMask) {
  for (const char* text : {"", " ", ",", "1,", ",1", "1,,1", "g", "0x1", "123456789", "-1", "1 1"})
    EXPECT_FALSE(CpuSet::parse(text).has_value()) << text;
}

TEST(CpuSet, RefusesProcessorsBeyondTheMostAndIgnoresLeadingZeros) {
  std::string words;
  for (int i = 0; i < CpuSet::kMost / 32; ++i) words += ",00000000";
  EXPECT_TRUE(CpuSet::parse("0" + words)->empty());
  EXPECT_FALSE(CpuSet::parse("1" + words).has_value());
  EXPECT_EQ(CpuSet::parse("80000000" + words.substr(9))->list().back(), CpuSet::kMost - 1);
  EXPECT_TRUE(CpuSet::parse("0" + words + words)->empty());
  EXPECT_FALSE(CpuSet::parse("1" + words + words).has_value());
  CpuSet set;
  set.add(CpuSet::kMost);
  set.add(-1);
  EXPECT_TRUE(set.empty());
}

TEST(CpuSet, PrintsMasksAndRanges) {
  EXPECT_EQ(CpuSet().mask(), "00000000");
  EXPECT_EQ(CpuSet().ranges(), "");
  EXPECT_EQ(set_of({0, 1, 2, 3, 8, 32}).mask(), "00000001,0000010f");
  EXPECT_EQ(set_of({0, 1, 2, 3, 8, 32}).ranges(), "0-3,8,32");
  EXPECT_EQ(set_of({95}).mask(), "80000000,00000000,00000000");
}

TEST(CpuSet, MasksReadBackAndOperationsAgreeWithMembership) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    CpuSet a, b;
    for (int i = 0; i < 40; ++i) a.add(static_cast<int>(random() % 200));
    for (int i = 0; i < 40; ++i) b.add(static_cast<int>(random() % 100));
    EXPECT_EQ(CpuSet::parse(a.mask()), a);
    const CpuSet both = a & b, either = a | b;
    for (int i = -1; i < 260; ++i) {
      EXPECT_EQ(both.has(i), a.has(i) && b.has(i));
      EXPECT_EQ(either.has(i), a.has(i) || b.has(i));
    }
    EXPECT_EQ(both.count() + either.count(), a.count() + b.count());
    EXPECT_TRUE(either.contains(a) && a.contains(both));
    EXPECT_EQ(a.contains(b), (a | b) == a);
    EXPECT_EQ(both, b & a);
  }
}

TEST(CpuSet, AllowedHoldsWhatTheThreadMayUse) {
  EXPECT_FALSE(CpuSet::allowed().empty());
  EXPECT_GE(CpuSet::allowed().count(), 1);
}

TEST(Difference, IsEmptyForEqualMachinesAndIgnoresOriginsAndWarnings) {
  Machine a = testing::random_machine(3);
  Machine b = a;
  b.source = "elsewhere";
  b.warnings.push_back({1, "odd"});
  for (Pci& pci : b.pcis) pci.origin.line = 99;
  EXPECT_EQ(difference(a, b), "");
}

TEST(Difference, NamesThePartTheFieldAndBothValues) {
  Machine a;
  a.pcis.resize(2);
  Machine b = a;
  b.pcis[1].link_width.value = 16;
  EXPECT_EQ(difference(a, b), "pci 1: link width: absent and 16");
  a.pcis[1].link_width.unreadable = "0";
  EXPECT_EQ(difference(a, b), "pci 1: link width: unreadable \"0\" and 16");
  b = a;
  b.pcis.pop_back();
  EXPECT_EQ(difference(a, b), "number of pcis: 2 and 1");
}

// Whatever one changes in a machine, the comparison sees it.
TEST(Difference, SeesEveryField) {
  const Machine base = [] {
    Machine m;
    m.hosts.resize(1), m.cpus.resize(1), m.pcis.resize(1), m.gpus.resize(1);
    m.nics.resize(1), m.nets.resize(1), m.peer_links.resize(1);
    return m;
  }();
  const auto changed = [&](auto change) {
    Machine m = base;
    change(m);
    EXPECT_NE(difference(base, m), "");
    EXPECT_NE(difference(m, base), "");
  };
  changed([](Machine& m) { m.version.value = 2; });
  changed([](Machine& m) { m.others.push_back({"a", "b"}); });
  changed([](Machine& m) { m.peer_links_stated = true; });
  changed([](Machine& m) { m.hosts[0].name = "a"; });
  changed([](Machine& m) { m.hosts[0].cpus.processing_units = 1; });
  changed([](Machine& m) { m.cpus[0].numa.value = 0; });
  changed([](Machine& m) { m.cpus[0].memory_bytes.value = 0; });
  changed([](Machine& m) { m.pcis[0].kind = PciKind::kGpu; });
  changed([](Machine& m) { m.pcis[0].parent = 0; });
  changed([](Machine& m) { m.gpus[0].rank.value = 0; });
  changed([](Machine& m) { m.gpus[0].names = {"cuda0"}; });
  changed([](Machine& m) { m.nics[0].pci = 0; });
  changed([](Machine& m) { m.nets[0].collectives.value = false; });
  changed([](Machine& m) { m.nets[0].nic = 0; });
  changed([](Machine& m) { m.peer_links[0].count.value = 1; });
  changed([](Machine& m) { m.peer_links[0].gpu = 0; });
}

}  // namespace
}  // namespace tessera::topology
