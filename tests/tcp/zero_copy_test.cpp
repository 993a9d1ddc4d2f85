// Sends that the kernel does not copy.
#include "transports/tcp/zero_copy.h"

#include <gtest/gtest.h>

#include <random>

#include "tcp/support/job.h"

namespace tessera::tcp {
namespace {

using Bytes = std::vector<std::byte>;

TEST(ZeroCopy, IsOffUnlessTheKernelHasIt) {
  ZeroCopy zero_copy;
  zero_copy.enable(-1);
  EXPECT_FALSE(zero_copy.worth(ZeroCopy::kFrom));
}

TEST(ZeroCopy, CountsRangesOfSendsAlsoWhereTheirNumbersWrap) {
  ZeroCopy zero_copy;
  for (int i = 0; i < 7; ++i) zero_copy.sent();
  zero_copy.over(0xfffffffe, 0xfffffffe, false);
  EXPECT_EQ(zero_copy.pending(), 6U);
  zero_copy.over(0xffffffff, 1, false);
  EXPECT_EQ(zero_copy.pending(), 3U);
  zero_copy.over(2, 4, false);
  EXPECT_EQ(zero_copy.pending(), 0U);
}

class Uncopied : public ::testing::TestWithParam<int> {};

// Loopback: the kernel takes the pages first, and copies them when it delivers.
TEST_P(Uncopied, WhatMayStayArrivesAndMayBeChangedOnceFlushed) {
  constexpr size_t kBytes = 5 << 20;
  Job job(2, loopback_config(GetParam()), kBytes);
  std::mt19937_64 random(7);
  Bytes data(kBytes);
  for (uint64_t round = 1; round <= 6; ++round) {
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    const Bytes original = data;
    const size_t odd = round * 12'345;  // neither pages nor calls are whole
    job.port(0, 1).put(0, data.data(), data.data(), odd);
    job.port(0, 1).put(odd, data.data() + odd, data.data() + odd, kBytes - odd);
    job.port(0, 1).signal({8, round, 0, {}});
    job.run_until([&] { return job.engines[0]->flushed(); });
    std::fill(data.begin(), data.end(), std::byte{0});
    job.run_until([&] { return job.landing(1).signals().size() == round; });
    EXPECT_TRUE(job.landing(1).memory() == original) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Sockets, Uncopied, ::testing::Values(1, 3));

}  // namespace
}  // namespace tessera::tcp
