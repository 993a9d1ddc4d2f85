// Thousands of ranks: what the compact form of plans and the uncontended path are for.
#include <gtest/gtest.h>

#include "simulator/simulate.h"
#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

constexpr double kGbs = 25;
constexpr double kLatency = 2;

Outcome all_reduce(const char* name, int ranks, size_t count, int chunks, const Cost& cost) {
  const machines::Machine machine = machines::star(ranks, kGbs, kLatency);
  const Algorithm* algorithm = find_algorithm(Collective::kAllReduce, name, Reach::kStaged);
  const Result<Source> source =
      Source::of(*algorithm, run::params_for(Collective::kAllReduce, ranks, chunks));
  EXPECT_TRUE(source.ok()) << source.status().message();
  Result<Outcome> outcome =
      simulate(source.value(), machines::StarRoutes(machine), {count, 4, 0}, cost);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRingRanks = 256;  // sanitizers take ten times as long
#else
constexpr int kRingRanks = 4096;
#endif

TEST(Scale, ARingOfThousandsOfRanksTakesWhatItsCostLineSays) {
  const int n = kRingRanks;
  const size_t count = size_t{64} << 20;
  const Cost cost = run::costs({.step_us = 0.3, .signal_us = 0.1});
  const Outcome outcome = all_reduce("ring", n, count, 1, cost);
  const double expected = 2.0 * (n - 1) * (kLatency + 0.4 + 4.0 * count / n / (kGbs * 1e3));
  EXPECT_NEAR(outcome.total_us, expected, 0.02 * expected);
  EXPECT_EQ(outcome.steps, static_cast<uint64_t>(n) * (2 * n - 1));
}

TEST(Scale, ADoubleTreeOf4096RanksIsFasterThanItsRingForSmallMessages) {
  const int n = 4096;
  const Cost cost = run::costs({.step_us = 0.3, .signal_us = 0.1});
  const Outcome outcome = all_reduce("double-tree", n, 1 << 16, 8, cost);
  const double ring = 2.0 * (n - 1) * (kLatency + 0.4);
  EXPECT_LT(outcome.total_us, ring / 10);
  EXPECT_GT(outcome.total_us, 2 * 11 * kLatency);
}

}  // namespace
}  // namespace tessera::simulator
