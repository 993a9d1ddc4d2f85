// Where threads may run near a device: never nowhere, never outside of what is allowed.
#include "topology/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::topology {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CpuSet range(int first, int last) {
  CpuSet set;
  for (int i = first; i <= last; ++i) set.add(i);
  return set;
}

Cpu cpu(int64_t numa, const CpuSet& affinity) {
  Cpu cpu;
  cpu.numa.value = numa;
  cpu.affinity.value = affinity;
  return cpu;
}

const Cpu kFirst = cpu(0, range(0, 15));
const Cpu kSecond = cpu(1, range(16, 31));

TEST(UsableNear, EverythingAllowedGivesTheCpusOwn) {
  std::string warning = "old";
  EXPECT_EQ(usable_near(kFirst, range(0, 31), &warning).ranges(), "0-15");
  EXPECT_EQ(warning, "");
  EXPECT_EQ(usable_near(kSecond, range(0, 31)).ranges(), "16-31");
}

TEST(UsableNear, OfAForeignNodeTheAllowedOnesWithAWarning) {
  std::string warning;
  EXPECT_EQ(usable_near(kFirst, range(4, 5), &warning).ranges(), "4-5");
  EXPECT_EQ(warning, "");
  EXPECT_EQ(usable_near(kSecond, range(4, 5), &warning).ranges(), "4-5");
  EXPECT_THAT(warning,
              AllOf(HasSubstr("no allowed CPU on NUMA node 1 (CPUs 16-31)"), HasSubstr("4-5")));
}

TEST(UsableNear, MasksThatNameNoAllowedCpuAreUseless) {
  EXPECT_EQ(usable_near(kFirst, range(40, 47)).ranges(), "40-47");
  EXPECT_EQ(usable_near(kSecond, range(40, 47)).ranges(), "40-47");
}

TEST(UsableNear, OneAllowedCpuPerNodeIsFound) {
  const CpuSet allowed = range(5, 5) | range(20, 20);
  EXPECT_EQ(usable_near(kFirst, allowed).ranges(), "5");
  EXPECT_EQ(usable_near(kSecond, allowed).ranges(), "20");
}

TEST(UsableNear, AnUnknownAffinityIsNoReasonToWarn) {
  std::string warning;
  Cpu unknown;
  unknown.affinity.unreadable = "zzz";
  EXPECT_EQ(usable_near(unknown, range(2, 3), &warning).ranges(), "2-3");
  EXPECT_EQ(warning, "");
}

TEST(UsableNear, AnUnknownAllowedSetChangesNothing) {
  EXPECT_EQ(usable_near(kFirst, {}).ranges(), "0-15");
}

class NearestNode : public ::testing::Test {
 protected:
  NearestNode() {
    machine_.hosts.resize(2);
    machine_.hosts[0].cpus.latency_nodes = {0, 1, 2};
    machine_.hosts[0].cpus.latency = {10, 20, 30, 20, 10, 12, 30, 12, 10};
    for (int i = 0; i < 3; ++i) machine_.cpus.push_back(cpu(i, range(4 * i, 4 * i + 3)));
    machine_.cpus.push_back(cpu(0, range(0, 3)));
    machine_.cpus.back().host = 1;
  }
  Machine machine_;
};

TEST_F(NearestNode, IsTakenWhereTheOwnHasNoAllowedCpu) {
  std::string warning;
  EXPECT_EQ(usable_near(machine_, 0, range(4, 11), &warning).ranges(), "4-7");
  EXPECT_THAT(warning,
              HasSubstr("no allowed CPU on NUMA node 0 (CPUs 0-3): using 4-7, the nearest"));
  EXPECT_EQ(usable_near(machine_, 2, range(0, 6)).ranges(), "4-6");
}

TEST_F(NearestNode, SharesAmongEquallyNearOnes) {
  machine_.hosts[0].cpus.latency = {10, 20, 20, 20, 10, 20, 20, 20, 10};
  EXPECT_EQ(usable_near(machine_, 0, range(6, 9)).ranges(), "6-9");
}

TEST_F(NearestNode, WithoutLatenciesIsAnyAllowed) {
  EXPECT_EQ(usable_near(machine_, 3, range(8, 11)).ranges(), "8-11");
  machine_.hosts[0].cpus.latency.clear();
  EXPECT_EQ(usable_near(machine_, 0, range(8, 11)).ranges(), "8-11");
}

TEST_F(NearestNode, IsTheOwnWhereThatIsAllowed) {
  std::string warning = "old";
  EXPECT_EQ(usable_near(machine_, 0, range(3, 9), &warning).ranges(), "3");
  EXPECT_EQ(warning, "");
}

}  // namespace
}  // namespace tessera::topology
