// The parts of an operator by themselves: index arithmetic, plans, tracker, budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fusion/budget.h"
#include "fusion/geometry.h"
#include "fusion/plans.h"
#include "fusion/tracker.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

TEST(RowChunks, EveryRowIsInTheChunkThatHasIt) {
  for (const int64_t rows : {1, 7, 64, 100}) {
    for (const int64_t block : {1, 9, 64, 100}) {
      for (const int chunks : {1, 2, 5}) {
        for (const size_t row_bytes : {4, 32, 64, 4096}) {
          const RowChunks cut(rows, block, chunks, row_bytes);
          const int count = static_cast<int>(round_up_div(rows, block)) * chunks;
          int64_t covered = 0;
          for (int chunk = 0; chunk < count; ++chunk) {
            const RowRange range = cut.rows_of(chunk);
            for (int64_t row = range.begin; row < range.end; ++row)
              EXPECT_EQ(cut.chunk_of(row), chunk);
            covered += range.size();
          }
          EXPECT_EQ(covered, rows);
        }
      }
    }
  }
}

TEST(FusedPlans, VerifyForOneToEightRanks) {
  for (const Collective collective : {Collective::kReduceScatter, Collective::kAllReduce,
                                      Collective::kAllGather, Collective::kAllToAll}) {
    for (const Mapping mapping : {Mapping::kDirect, Mapping::kRing}) {
      if (collective == Collective::kAllToAll && mapping == Mapping::kRing) continue;
      for (int ranks = 1; ranks <= 8; ++ranks) {
        for (const int chunks : {1, 3}) {
          FusedPlanShape shape{collective, mapping, ranks, chunks, chunks == 3, {}};
          // The last chunks are empty: no tiles.
          for (int chunk = 0; chunk < ranks * chunks && collective != Collective::kAllGather;
               ++chunk)
            shape.arrivals.push_back(chunk + 2 < ranks * chunks || chunk == 0 ? 3 : 0);
          const Result<VerifiedPlan> plan = verify(fused_plan(shape));
          EXPECT_TRUE(plan.ok()) << to_string(collective) << " " << to_string(mapping) << " "
                                 << ranks << " ranks: " << plan.status().message();
        }
      }
    }
  }
}

TEST(FusedPlans, FoldLanesWhereThereAreMoreChunksThanLanes) {
  for (const Mapping mapping : {Mapping::kDirect, Mapping::kRing}) {
    const FusedPlanShape shape{Collective::kAllReduce,       mapping, 4, 30, false,
                               std::vector<uint32_t>(120, 2)};
    const Result<VerifiedPlan> plan = verify(fused_plan(shape));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
  }
}

TEST(FusedPlans, WithoutTheirTilesDoNotVerify) {
  Plan plan = fused_plan({Collective::kReduceScatter, Mapping::kRing, 2, 1, false, {3, 3}});
  std::vector<Wait>& waits = plan.programs[0].lanes[0].steps[0].waits;
  std::erase_if(waits, [](const Wait& wait) { return wait.increment == 3; });
  const Result<VerifiedPlan> result = verify(std::move(plan));
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), ::testing::HasSubstr("gets 3 arrivals in a pass"));
}

// 10 x 4 in tiles of 4 x 2, chunks of 5 rows: the middle row of tiles lies over both.
class TrackerOfTwoChunks : public ::testing::Test {
 protected:
  const TileGrid grid_{10, 4, 4, 2};
  const RowChunks chunks_{10, 5, 1, 4096};
  PaddedCounter counters_[2];
};

TEST_F(TrackerOfTwoChunks, CountsATileOnEveryChunkItTouches) {
  Tracker tracker(grid_, chunks_, 1, counters_, 2, 0);
  EXPECT_EQ(tracker.report(0, 0, 0), Tracker::Report::kCounted);
  EXPECT_EQ(tracker.report(1, 0, 0), Tracker::Report::kCounted);
  EXPECT_EQ(tracker.report(1, 1, 0), Tracker::Report::kCounted);
  EXPECT_EQ(counters_[0].counter.value(), 3);
  EXPECT_EQ(counters_[1].counter.value(), 2);
  EXPECT_EQ(tracker.missing(0), "3 of 6 tiles are missing: (0,1) (2,0) (2,1)");
  EXPECT_EQ(tracker.report(0, 1, 0), Tracker::Report::kComplete);
  EXPECT_EQ(tracker.report(0, 1, 0), Tracker::Report::kTwice);
  EXPECT_EQ(counters_[0].counter.value(), 4);
}

TEST_F(TrackerOfTwoChunks, CountsATileOnceItsLastPartIsThere) {
  Tracker tracker(grid_, chunks_, 3, counters_, 2, 0);
  EXPECT_EQ(tracker.report(2, 0, 0), Tracker::Report::kCounted);
  EXPECT_EQ(tracker.report(2, 0, 0), Tracker::Report::kCounted);
  EXPECT_EQ(counters_[1].counter.value(), 0);
  EXPECT_EQ(tracker.report(2, 0, 0), Tracker::Report::kCounted);
  EXPECT_EQ(counters_[1].counter.value(), 1);
  EXPECT_EQ(tracker.report(2, 0, 0), Tracker::Report::kTwice);
}

TEST_F(TrackerOfTwoChunks, GoesOnWithTheNextLaunchWithoutReset) {
  counters_[0].counter.publish(4 * 7);  // seven launches of an operator before
  counters_[1].counter.publish(4 * 7);
  Tracker tracker(grid_, chunks_, 1, counters_, 2, 7);
  for (uint64_t launch = 0; launch < 3; ++launch) {
    int complete = 0;
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t col = 0; col < 2; ++col)
        complete += tracker.report(row, col, launch) == Tracker::Report::kComplete;
    }
    EXPECT_EQ(complete, 2);
    EXPECT_EQ(tracker.missing(launch), "");
    EXPECT_TRUE(tracker.clean(launch + 1));
    EXPECT_FALSE(tracker.clean(launch));
  }
}

TEST_F(TrackerOfTwoChunks, AsksForALookEveryFewTiles) {
  Tracker tracker(grid_, chunks_, 1, counters_, 2, 0);
  tracker.set_every(2);
  EXPECT_EQ(tracker.report(0, 0, 0), Tracker::Report::kCounted);
  EXPECT_EQ(tracker.report(0, 1, 0), Tracker::Report::kLook);
}

TEST(Budget, LeavesComputeItsShare) {
  Budget budget;
  const Budget::Clock::time_point start{std::chrono::seconds(1)};
  const std::chrono::microseconds us(1);
  budget.set({25, 16});
  EXPECT_TRUE(budget.allows(start));
  budget.spent(start, start + 10 * us);
  EXPECT_FALSE(budget.allows(start + 39 * us));  // 10 of steps, then 30 of compute
  EXPECT_TRUE(budget.allows(start + 40 * us));
  budget.set({100, 16});
  budget.spent(start, start + 50 * us);
  EXPECT_TRUE(budget.allows(start + 50 * us));
  budget.set({0, 16});
  EXPECT_FALSE(budget.allows(start + 1000 * us));
}

}  // namespace
}  // namespace tessera
