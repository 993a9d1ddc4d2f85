#include "comm/scratch.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tessera {
namespace {

TEST(Scratch, WhatIsReleasedIsBorrowedAgain) {
  Scratch scratch(100, 1000);
  EXPECT_EQ(scratch.borrow(300), 700U);
  EXPECT_EQ(scratch.borrow(200), 500U);
  EXPECT_FALSE(scratch.borrow(1)) << "the lower half is not lent";
  scratch.release(700, 300);
  EXPECT_EQ(scratch.borrow(100), 700U);
  EXPECT_FALSE(scratch.borrow(201));
  scratch.release(700, 100);
  scratch.release(500, 200);
  EXPECT_EQ(scratch.borrow(500), 500U) << "neighbours become one";
}

TEST(Scratch, CollectivesGrowAsFarAsNothingWasLent) {
  Scratch scratch(100, 1000);
  EXPECT_EQ(scratch.borrow(300), 700U);
  EXPECT_EQ(scratch.carve(500), 100U);
  EXPECT_EQ(scratch.left(), 100U);
  EXPECT_FALSE(scratch.carve(101));
  EXPECT_EQ(scratch.borrow(100), 600U);
  EXPECT_FALSE(scratch.borrow(1));
  EXPECT_EQ(scratch.left(), 0U);
}

TEST(Scratch, TheLowestGapGrowsDownwards) {
  Scratch scratch(0, 1000);
  EXPECT_EQ(scratch.borrow(100), 900U);
  scratch.release(900, 100);
  EXPECT_EQ(scratch.borrow(300), 700U);
}

TEST(Scratch, PartsNeverOverlap) {
  std::mt19937 random(7);
  Scratch scratch(64, 1 << 16);
  std::vector<int> owner(1 << 16, 0);
  std::vector<std::pair<size_t, size_t>> lent;
  int lender = 0;
  const auto own = [&](size_t at, size_t bytes, int from, int to) {
    for (size_t i = at; i < at + bytes; ++i) {
      ASSERT_EQ(owner[i], from);
      owner[i] = to;
    }
  };
  own(0, 64, 0, -1);
  for (int i = 0; i < 20'000; ++i) {
    const size_t bytes = 1 + random() % 3000;
    const unsigned what = random() % 8;
    if (what == 0 && i % 100 == 0) {
      if (const auto at = scratch.carve(bytes)) own(*at, bytes, 0, -1);
    } else if (what < 4) {
      if (const auto at = scratch.borrow(bytes)) {
        own(*at, bytes, 0, ++lender);
        lent.emplace_back(*at, bytes);
      }
    } else if (!lent.empty()) {
      std::swap(lent[random() % lent.size()], lent.back());
      const auto [at, size] = lent.back();
      lent.pop_back();
      own(at, size, owner[at], 0);
      scratch.release(at, size);
    }
  }
}

}  // namespace
}  // namespace tessera
