// Without contention a simulation must give what the alpha-beta formulas of the algorithms say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "simulator/simulate.h"
#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

using machines::full;
using machines::star;

constexpr double kGbs = 20;
constexpr double kLatency = 1.5;

void expect_near(double us, double expected) { EXPECT_NEAR(us, expected, expected * 0.02); }

TEST(ClosedForm, ARingAllReduceTakesWhatItsCostLineSays) {
  const Cost cost = run::costs({.step_us = 0.3, .signal_us = 0.1, .reduce_gbs = 50});
  const double alpha = kLatency + 0.3 + 0.1;
  const double beta = 1 / (kGbs * 1e3), gamma = 1 / (50 * 1e3);
  for (const int n : {2, 3, 8, 16}) {
    const auto machine = star(n, kGbs, kLatency);
    for (const size_t count : {size_t{64} * n, size_t{1} << 20}) {
      const double bytes = 4.0 * static_cast<double>(count);
      // The last sum's way ends with a copy from scratch, which costs a step.
      const double expected = 2 * (n - 1) * alpha + 0.3 + 2 * (n - 1.0) / n * bytes * beta +
                              (n - 1.0) / n * bytes * gamma;
      expect_near(run::algorithm(Collective::kAllReduce, "ring", machine, count, cost).total_us,
                  expected);
    }
  }
}

// A month, on a link of 20 bytes a microsecond.
TEST(ClosedForm, TimesBeyondAllReasonAreNotCut) {
  const auto machine = star(2, 20e-3, kLatency);
  const size_t count = size_t{1} << 44;
  const double bytes = 4.0 * static_cast<double>(count);
  expect_near(
      run::algorithm(Collective::kBroadcast, "one-hop", machine, count, run::costs({})).total_us,
      bytes / 20);
}

TEST(ClosedForm, ATreeBroadcastTakesWhatItsCostLineSays) {
  const Cost cost = run::costs({.step_us = 0.3, .signal_us = 0});
  const int n = 15, m = 8;  // a full tree of height 3
  const size_t count = 1 << 20;
  const double chunk = 4.0 * count / m;
  // An inner rank sends each chunk twice over its one link; the last leaf then has it.
  const double expected = (std::floor(std::log2(n)) - 1 + m) * (0.3 + 2 * chunk / (kGbs * 1e3)) +
                          std::floor(std::log2(n)) * kLatency;
  const auto machine = star(n, kGbs, kLatency);
  expect_near(run::algorithm(Collective::kBroadcast, "tree", machine, count, cost, m).total_us,
              expected);
}

// Each of its n - 1 exchanges is a put and a copy out of the slot; from the fifth on a credit too.
TEST(ClosedForm, AnAllToAllTakesWhatItsCostLineSays) {
  const Cost cost = run::costs({.step_us = 0.3, .signal_us = 0.1});
  for (const int n : {2, 4, 9}) {
    const auto machine = full(n, kGbs, kLatency);
    for (const size_t count : {size_t{64}, size_t{1} << 18}) {
      const double block = 4.0 * static_cast<double>(count);
      const double expected = 0.3 + (n - 1) * (2 * 0.3 + 0.1 + kLatency + block / (kGbs * 1e3)) +
                              std::max(0, n - 1 - 4) * 0.1;
      expect_near(run::algorithm(Collective::kAllToAll, "pairwise", machine, count, cost).total_us,
                  expected);
    }
  }
}

TEST(ClosedForm, AOneHopAllGatherSharesASendersLinkAmongItsPeers) {
  const Cost cost = run::costs({});
  const int n = 5;
  const size_t count = 1 << 20;
  const double expected = kLatency + (n - 1) * 4.0 * count / (kGbs * 1e3);
  expect_near(
      run::algorithm(Collective::kAllGather, "one-hop", star(n, kGbs, kLatency), count, cost)
          .total_us,
      expected);
}

// NCCL's figure for one NVLink of that generation is 20.6 GB/s; eighteen go to the switches. The
// bus bandwidth of its ring model is channels x bandwidth of one, here a channel for each link.
TEST(ClosedForm, ARingOnAMachineWithAnNvSwitchHasTheBusBandwidthOfItsLinks) {
  constexpr int kRanks = 8, kLinks = 18;
  constexpr double kPerLink = 20.6;
  const auto machine = star(kRanks, kLinks * kPerLink, 1.0);
  const size_t count = size_t{256} << 20;
  const Outcome outcome =
      run::algorithm(Collective::kAllReduce, "ring", machine, count, Cost{}, 1, count / 4);
  const double bytes = 4.0 * count;
  const double bus = bytes / outcome.total_us / 1e3 * 2 * (kRanks - 1) / kRanks;
  EXPECT_NEAR(bus, kLinks * kPerLink, 0.1 * kLinks * kPerLink);
}

TEST(ClosedForm, ABarrierTakesOneLatencyARound) {
  const Cost cost = run::costs({.step_us = 0, .signal_us = 0});
  EXPECT_NEAR(
      run::algorithm(Collective::kBarrier, "dissemination", star(8, kGbs, kLatency), 0, cost)
          .total_us,
      3 * kLatency, 1e-3);
}

}  // namespace
}  // namespace tessera::simulator
