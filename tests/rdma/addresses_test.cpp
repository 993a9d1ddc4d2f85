// Which ports and which addresses are used.
#include <gtest/gtest.h>

#include "transports/ib/gid.h"
#include "transports/ib/hca_filter.h"

namespace tessera::ib {
namespace {

TEST(HcaFilter, NamesArePrefixesUnlessWholeNamesAreWanted) {
  EXPECT_TRUE(HcaFilter("").passes("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("mlx5").passes("mlx5_10", 2));
  EXPECT_TRUE(HcaFilter("mlx5_1").passes("mlx5_10", 1));
  EXPECT_FALSE(HcaFilter("=mlx5_1").passes("mlx5_10", 1));
  EXPECT_TRUE(HcaFilter("=mlx5_1,mlx5_10").passes("mlx5_10", 1));
  EXPECT_FALSE(HcaFilter("mlx5").passes("rxe0", 1));
}

TEST(HcaFilter, AnEntryMayNameAPort) {
  EXPECT_TRUE(HcaFilter("mlx5_0:2").passes("mlx5_0", 2));
  EXPECT_FALSE(HcaFilter("mlx5_0:2").passes("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("=mlx5_0:2,mlx5_0:1").passes("mlx5_0", 1));
}

TEST(HcaFilter, ACaretExcludes) {
  EXPECT_FALSE(HcaFilter("^mlx5_0").passes("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("^mlx5_0").passes("mlx5_1", 1));
  EXPECT_TRUE(HcaFilter("^=mlx5_1").passes("mlx5_10", 1));
  EXPECT_FALSE(HcaFilter("^mlx5_0:1").passes("mlx5_0", 1));
  EXPECT_TRUE(HcaFilter("^mlx5_0:1").passes("mlx5_0", 2));
}

Gid ipv4(uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }
constexpr Gid kLinkLocal = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1};
constexpr Gid kGlobal = {0xfd, 0, 0, 0, 0, 0, 0, 0, 1};

TEST(Gids, AnIpv4AddressOfRoceV2IsBest) {
  const GidEntry entries[] = {{0, kLinkLocal, GidType::kRoceV1}, {1, kLinkLocal, GidType::kRoceV2},
                              {2, ipv4(1), GidType::kRoceV1},    {3, ipv4(1), GidType::kRoceV2},
                              {4, kGlobal, GidType::kRoceV2},    {5, ipv4(2), GidType::kRoceV2}};
  EXPECT_EQ(best_gid(entries), 3);
}

TEST(Gids, VersionTwoCountsMoreThanTheKindOfAddress) {
  const GidEntry entries[] = {{0, ipv4(1), GidType::kRoceV1}, {1, kLinkLocal, GidType::kRoceV2}};
  EXPECT_EQ(best_gid(entries), 1);
}

TEST(Gids, EmptyEntriesAreOfNoUse) {
  const GidEntry entries[] = {{0, {}, GidType::kRoceV2}};
  EXPECT_EQ(best_gid(entries), -1);
  EXPECT_EQ(best_gid({}), -1);
}

TEST(Gids, AreWrittenAsPeopleWriteAddresses) {
  EXPECT_EQ(to_text(ipv4(7)), "10.0.0.7");
  EXPECT_EQ(to_text(kLinkLocal), "fe80::100:0:0:0");
}

TEST(Gids, TheKernelsWordsTellTheirType) {
  EXPECT_EQ(gid_type("RoCE v2"), GidType::kRoceV2);
  EXPECT_EQ(gid_type("IB/RoCE v1"), GidType::kRoceV1);
  EXPECT_EQ(gid_type(""), GidType::kRoceV1);
}

}  // namespace
}  // namespace tessera::ib
