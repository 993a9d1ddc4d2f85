// What the model says of a fused operator, and what it counts.
#include "fusion/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/machine.h"
#include "fusion/traffic.h"

namespace tessera {
namespace {

FusedPlanShape scatter(Mapping mapping, int ranks, int chunks, bool remote) {
  FusedPlanShape shape{Collective::kReduceScatter, mapping, ranks, chunks, remote, {}};
  shape.arrivals.assign(static_cast<size_t>(ranks * chunks), 1);
  return shape;
}

TEST(FusedTraffic, OfARingEqualsT3sFormulas) {
  for (int n = 2; n <= 16; ++n) {
    for (const int chunks : {1, 4}) {
      constexpr uint64_t kBlock = 8;
      const auto count = [&](bool remote, CountSums sums) {
        const Plan plan = fused_plan(scatter(Mapping::kRing, n, chunks, remote));
        const Traffic t = traffic_of(plan, n / 2, kBlock, remote, sums);
        return std::pair(t.read, t.written);
      };
      const auto chunks_of = [&](int read, int written) {
        return std::pair(read * kBlock, written * kBlock);
      };
      EXPECT_EQ(count(true, CountSums::kMerging), chunks_of(n - 2, 2 * n - 2)) << n;
      EXPECT_EQ(count(true, CountSums::kOperands), chunks_of(2 * n - 2, 2 * n - 1)) << n;
      EXPECT_EQ(count(false, CountSums::kOperands), chunks_of(2 * n - 1, 2 * n)) << n;
    }
  }
}

TEST(FusedTraffic, OfAProductAndTheLibrarysRingEqualsT3sFormula) {
  const Algorithm* ring = find_algorithm(Collective::kReduceScatter, "ring", Reach::kStaged);
  ASSERT_NE(ring, nullptr);
  for (int n = 2; n <= 16; ++n) {
    AlgorithmParams params;
    params.ranks = n;
    const Traffic t = traffic_of(ring->build(params), 1, 64, false, CountSums::kOperands);
    EXPECT_EQ(t.read, 64u * (2 * n - 1)) << n;
    EXPECT_EQ(t.written, 64u * 2 * n) << n;
  }
}

TEST(FusedTraffic, OfADirectScatterHasNoHops) {
  const Plan plan = fused_plan(scatter(Mapping::kDirect, 4, 2, true));
  const Traffic t = traffic_of(plan, 0, 8, true, CountSums::kOperands);
  EXPECT_EQ(t.read, 8u * 4);               // three parts of peers and the own
  EXPECT_EQ(t.written, 8u * (1 + 3 + 1));  // own tiles, parts of peers, the sum
}

// N ranks, chunks of one MB whose transfer takes t us.
struct Scene {
  Scene(Collective collective, Mapping mapping, int ranks, int chunks, double t)
      : machine(fused_machine(&(links = emulated::uniform_links(ranks, 1e6 / (t * 1000),
                                                                std::chrono::nanoseconds(0))),
                              Site())) {
    FusedDescription wish;
    wish.collective = collective;
    wish.mapping = mapping;
    wish.rows = ranks * 1000;
    wish.cols = 250;
    wish.tile_rows = 1000 / chunks;
    wish.tile_cols = 250;
    wish.chunks = chunks;
    description = complete(wish, ranks, 0).value();
    geometry = Geometry(description, ranks, 0);
    shape = shape_of(description, geometry, ranks);
  }
  double time(double produce_us, double consume_us = 0) const {
    return fused_time(fused_plan(shape), description, geometry, shape, *machine,
                      {produce_us, consume_us})
        .value();
  }
  emulated::Links links;
  std::unique_ptr<simulator::Routes> machine;
  FusedDescription description;
  Geometry geometry;
  FusedPlanShape shape;
};

// T3's closed form is of whole chunks; first hops of its hardware begin before a chunk is complete.
double ideal(int n, double g, double t) {
  return t <= g ? n * g : std::max(n * g, (n - 1) * t + std::max(0.0, 2 * g - t));
}

TEST(FusedForecast, MeetsTheClosedFormOfAnIdealRing) {
  constexpr double kG = 10'000;
  for (const int n : {4, 8}) {
    for (const double ratio : {0.25, 0.5, 1.0, 2.0, 3.0}) {
      const Scene scene(Collective::kReduceScatter, Mapping::kRing, n, 10, ratio * kG);
      const double time = scene.time(n * kG);
      EXPECT_GE(time, 0.9 * ideal(n, kG, ratio * kG)) << n << " ranks, " << ratio;
      EXPECT_LE(time, 1.05 * ideal(n, kG, ratio * kG)) << n << " ranks, " << ratio;
    }
  }
}

TEST(FusedForecast, TilesMadeInOneOrderOnAllRanksHideLess) {
  const Scene scene(Collective::kReduceScatter, Mapping::kRing, 4, 1, 10'000);
  const double time = fused_time(fused_plan(scene.shape), scene.description, scene.geometry,
                                 scene.shape, *scene.machine, {40'000, 0, false})
                          .value();
  EXPECT_NEAR(time, 70'000, 500);  // one chunk a rank: product, then all of the ring
}

TEST(FusedForecast, AChainTakesLittleMoreThanItsKernelsWhereTransfersAreShort) {
  const Scene scene(Collective::kAllReduce, Mapping::kRing, 4, 10, 2'000);
  EXPECT_GE(scene.time(40'000, 40'000), 80'000);
  EXPECT_LE(scene.time(40'000, 40'000), 84'000);
}

TEST(FusedForecast, AConsumerWaitsForWhatIsOnItsWay) {
  const Scene scene(Collective::kAllGather, Mapping::kRing, 4, 10, 10'000);
  EXPECT_NEAR(scene.time(0, 0), 30'000, 1'000);
  EXPECT_GE(scene.time(0, 8'000), 30'000 + 8'000 / 40);
  EXPECT_LE(scene.time(0, 8'000), 33'000);
}

TEST(FusedForecast, ComputingAndCopyingOnOneCoreTakesAtLeastBoth) {
  // No link: all is copied by the ranks themselves.
  const Scene scene(Collective::kReduceScatter, Mapping::kDirect, 2, 4, 0.001);
  EXPECT_GT(scene.time(100'000), 100'050);
}

}  // namespace
}  // namespace tessera
