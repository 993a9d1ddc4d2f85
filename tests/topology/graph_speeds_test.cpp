#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/link_speeds.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;

Stated<int> stated(int value) { return {value, {}}; }

double smp(const std::string& vendor, int family, int model) {
  Cpu cpu;
  cpu.arch = "x86_64";
  cpu.vendor = vendor;
  cpu.family = stated(family);
  cpu.model = stated(model);
  return smp_speed(cpu).bandwidth;
}

TEST(LinkSpeeds, OfNvlinkGoByComputeCapability) {
  EXPECT_EQ(nvlink_speed(stated(60)).bandwidth, 18);
  EXPECT_EQ(nvlink_speed(stated(70)).bandwidth, 20);
  EXPECT_EQ(nvlink_speed(stated(80)).bandwidth, 20);
  EXPECT_EQ(nvlink_speed(stated(86)).bandwidth, 12);
  EXPECT_EQ(nvlink_speed(stated(90)).bandwidth, 20.6);
  EXPECT_EQ(nvlink_speed(stated(100)).bandwidth, 40.1);
  EXPECT_EQ(nvlink_speed(stated(120)).bandwidth, 40.1);
  EXPECT_THAT(nvlink_speed({}).note, HasSubstr("not stated"));
}

TEST(LinkSpeeds, OfXgmiGoByArchitectureInOldAndNewSpelling) {
  EXPECT_EQ(xgmi_speed("gfx906").bandwidth, 24);
  EXPECT_EQ(xgmi_speed("908").bandwidth, 24);
  EXPECT_EQ(xgmi_speed("910").bandwidth, 36);
  EXPECT_EQ(xgmi_speed("gfx90a").bandwidth, 36);
  EXPECT_EQ(xgmi_speed("gfx942").bandwidth, 48);
  EXPECT_THAT(xgmi_speed("gfx1234").note, HasSubstr("newest"));
}

TEST(LinkSpeeds, OfPcieAreRateTimesWidth) {
  const auto pcie = [](double gts, int width) {
    return pcie_speed({gts, {}}, stated(width)).bandwidth;
  };
  EXPECT_EQ(pcie(8, 16), 12);
  EXPECT_EQ(pcie(16, 16), 24);
  EXPECT_EQ(pcie(32, 16), 48);
  EXPECT_EQ(pcie(64, 8), 48);
  EXPECT_EQ(pcie(2.5, 1), 15.0 / 80);
  EXPECT_EQ(pcie_speed({}, {}).bandwidth, 0) << "not known is not zero bandwidth: no answer";
  EXPECT_EQ(pcie_speed({16.0, {}}, {}).bandwidth, 24);
}

TEST(LinkSpeeds, BetweenSocketsGoByCpuModel) {
  EXPECT_EQ(smp("GenuineIntel", 6, 79), 6);
  EXPECT_EQ(smp("GenuineIntel", 6, 85), 10);
  EXPECT_EQ(smp("GenuineIntel", 6, 143), 22);
  EXPECT_EQ(smp("GenuineIntel", 6, 207), 40);
  EXPECT_EQ(smp("AuthenticAMD", 25, 1), smp("AuthenticAMD", 175, 1));
  EXPECT_EQ(smp("  Shanghai  ", 7, 91), 9);
  EXPECT_EQ(smp("Unheard", 1, 1), 10);
}

TEST(LinkSpeeds, OfANewerModelAreThoseOfTheNewestKnown) {
  EXPECT_EQ(smp("GenuineIntel", 6, 173), 40);
  EXPECT_EQ(smp("GenuineIntel", 19, 1), 40);
  EXPECT_EQ(smp("AuthenticAMD", 99, 1), 16);
}

TEST(LinkSpeeds, NameWhatTheyAssume) {
  Cpu cpu;
  EXPECT_THAT(smp_speed(cpu).note, HasSubstr("vendor is not in the table: 10 GB/s"));
  cpu.vendor = "GenuineIntel";
  cpu.model = stated(173);
  EXPECT_THAT(smp_speed(cpu).note, HasSubstr("model 173 is not in the table: 40 GB/s"));
  EXPECT_EQ(network_speed({400000.0, {}}).bandwidth, 50);
  EXPECT_THAT(network_speed({}).note, HasSubstr("10 Gb/s"));
}

TEST(LinkSpeeds, FamilyNumbersHaveTwoEncodings) {
  EXPECT_EQ(plain_family(143), 23);
  EXPECT_EQ(plain_family(175), 25);
  EXPECT_EQ(plain_family(191), 26);
  EXPECT_EQ(plain_family(6), 6);
}

}  // namespace
}  // namespace tessera::topology
