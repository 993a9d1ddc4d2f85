// The order in which frames count, however they come.
#include "transports/tcp/arrivals.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "tcp/support/memory_landing.h"

namespace tessera::tcp {
namespace {

FrameHeader frame(FrameKind kind, uint32_t number) {
  FrameHeader header;
  header.kind = kind;
  header.number = number;
  header.value = number;
  return header;
}

std::vector<uint64_t> values(const MemoryLanding& landing) {
  std::vector<uint64_t> values;
  for (const auto& seen : landing.signals()) values.push_back(seen.signal.value);
  return values;
}

TEST(Arrivals, ASignalWaitsForEveryFrameBeforeIt) {
  MemoryLanding landing(0);
  Arrivals arrivals(landing, 0, false);
  EXPECT_TRUE(arrivals.arrived(frame(FrameKind::kSignal, 3)));
  EXPECT_TRUE(arrivals.arrived(frame(FrameKind::kPut, 2)));
  EXPECT_TRUE(landing.signals().empty());
  EXPECT_EQ(arrivals.complete(), 0U);
  EXPECT_TRUE(arrivals.arrived(frame(FrameKind::kPut, 1)));
  EXPECT_EQ(values(landing), std::vector<uint64_t>{3});
  EXPECT_EQ(arrivals.complete(), 3U);
}

TEST(Arrivals, WhateverTheOrderSignalsKeepTheirsAndCopiesCountOnce) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<FrameHeader> frames;
    std::vector<uint64_t> expected;
    for (uint32_t number = 1; number <= 300; ++number) {
      const bool signal = number % 3 == 0;
      frames.push_back(frame(signal ? FrameKind::kSignal : FrameKind::kPut, number));
      if (signal) expected.push_back(number);
      if (number % 7 == 0) frames.push_back(frames.back());
    }
    std::shuffle(frames.begin(), frames.end(), std::mt19937(seed));
    MemoryLanding landing(0);
    Arrivals arrivals(landing, 0, false);
    for (const FrameHeader& header : frames) {
      if (!arrivals.known(header)) {
        EXPECT_TRUE(arrivals.arrived(header));
      }
      EXPECT_TRUE(arrivals.known(header));
    }
    EXPECT_EQ(values(landing), expected);
    EXPECT_EQ(arrivals.complete(), 300U);
  }
}

TEST(Arrivals, OverOneSocketAGapOrACopyIsRefused) {
  MemoryLanding landing(0);
  Arrivals arrivals(landing, 0, true);
  EXPECT_TRUE(arrivals.arrived(frame(FrameKind::kPut, 1)));
  EXPECT_FALSE(arrivals.arrived(frame(FrameKind::kPut, 3)));
  EXPECT_FALSE(arrivals.arrived(frame(FrameKind::kPut, 1)));
}

TEST(Arrivals, ANumberFarAheadIsRefusedInsteadOfRemembered) {
  MemoryLanding landing(0);
  Arrivals arrivals(landing, 0, false);
  EXPECT_FALSE(arrivals.arrived(frame(FrameKind::kSignal, 1U << 30)));
  EXPECT_FALSE(arrivals.arrived(frame(FrameKind::kSignal, 0xffff'fff0)));  // or far behind
}

}  // namespace
}  // namespace tessera::tcp
