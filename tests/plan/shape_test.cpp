#include "plan/shape.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int kRanks = 4;
constexpr int kRoot = 2;

template <class Check>
void for_all(Check check) {
  for (int c = 0; c < kCollectives; ++c) {
    for (int rank = 0; rank < kRanks; ++rank) check(static_cast<Collective>(c), rank);
  }
}

TEST(Shape, EveryOutputBlockIsFilledFromABlockThatExists) {
  for_all([](Collective collective, int rank) {
    for (int block = 0; block < output_blocks(collective, kRanks, kRoot, rank); ++block) {
      int contributors = 0;
      for (int from = 0; from < kRanks; ++from) {
        const int in = required_input_block(collective, kRanks, kRoot, rank, block, from);
        EXPECT_LT(in, input_blocks(collective, kRanks, kRoot, from)) << to_string(collective);
        contributors += in >= 0 ? 1 : 0;
      }
      EXPECT_EQ(contributors, reduces(collective) ? kRanks : 1) << to_string(collective);
    }
  });
}

TEST(Shape, InPlaceTheShorterBufferLiesWithinTheLonger) {
  for_all([](Collective collective, int rank) {
    if (!has_in_place(collective, kRanks, kRoot, rank)) return;
    const int in = input_blocks(collective, kRanks, kRoot, rank);
    const int out = output_blocks(collective, kRanks, kRoot, rank);
    const int shift = in_place_shift(collective, kRanks, kRoot, rank);
    if (in <= out) {
      EXPECT_GE(shift, 0) << to_string(collective);
      EXPECT_LE(shift + in, out) << to_string(collective);
    } else {
      EXPECT_LE(shift, 0) << to_string(collective);
      EXPECT_LE(-shift + out, in) << to_string(collective);
    }
  });
}

TEST(Shape, InPlaceARanksOwnContributionLiesWhereItsOutputHoldsIt) {
  for_all([](Collective collective, int rank) {
    if (!has_in_place(collective, kRanks, kRoot, rank)) return;
    const int shift = in_place_shift(collective, kRanks, kRoot, rank);
    int own = 0;
    for (int block = 0; block < output_blocks(collective, kRanks, kRoot, rank); ++block) {
      const int in = required_input_block(collective, kRanks, kRoot, rank, block, rank);
      if (in < 0) continue;
      ++own;
      EXPECT_EQ(in + shift, block) << to_string(collective);
    }
    EXPECT_EQ(own, 1) << to_string(collective);
  });
}

TEST(Shape, OnlyTheRootHasTheLongBufferOfRootedCollectives) {
  EXPECT_EQ(input_blocks(Collective::kScatter, kRanks, kRoot, kRoot), kRanks);
  EXPECT_EQ(input_blocks(Collective::kScatter, kRanks, kRoot, 0), 0);
  EXPECT_EQ(output_blocks(Collective::kGather, kRanks, kRoot, kRoot), kRanks);
  EXPECT_EQ(output_blocks(Collective::kGather, kRanks, kRoot, 0), 0);
  EXPECT_EQ(output_blocks(Collective::kReduce, kRanks, kRoot, 0), 0);
  EXPECT_EQ(input_blocks(Collective::kBroadcast, kRanks, kRoot, 0), 0);
  EXPECT_FALSE(has_in_place(Collective::kAllToAll, kRanks, kRoot, 0));
}

}  // namespace
}  // namespace tessera
