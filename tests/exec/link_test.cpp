// Linking: where counters go, what is left out, and how data is cut.
#include "exec/link.h"

#include <gtest/gtest.h>

#include "algorithms/algorithms.h"
#include "plan/builder.h"
#include "plan/partition.h"
#include "sync/slot.h"

namespace tessera {
namespace {

VerifiedPlan verified(Collective collective, const char* name, Reach reach, int ranks, int root,
                      int depth) {
  AlgorithmParams params;
  params.ranks = ranks;
  params.root = root;
  params.scratch_depth = depth;
  Result<VerifiedPlan> plan = verify(find_algorithm(collective, name, reach)->build(params));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

TEST(Link, PutsOfAOneHopExchangeCarryTheirCounterInTheSlot) {
  const VerifiedPlan plan = verified(Collective::kAllReduce, "one-hop", Reach::kStaged, 4, -1, 2);
  const Program program = link(plan, 1, {256, false});
  ASSERT_FALSE(program.waits.empty());
  for (const WaitCode& wait : program.waits) EXPECT_TRUE(wait.embedded);
  for (const SignalCode& signal : program.signals) EXPECT_TRUE(signal.embedded);
}

TEST(Link, CreditsKeepACounterOfTheirOwn) {
  const VerifiedPlan plan = verified(Collective::kBroadcast, "one-hop", Reach::kStaged, 3, 0, 4);
  const Program root = link(plan, 0, {256, false});
  int credits = 0;
  for (const WaitCode& wait : root.waits) {
    if (wait.lag == 0) continue;
    ++credits;
    EXPECT_FALSE(wait.embedded);
    EXPECT_EQ(wait.lag, 4U);
  }
  EXPECT_EQ(credits, 2);
}

// Depth, expected period: at most half the lag, a power of two.
TEST(Link, CreditsAreGivenForSeveralPassesAtATime) {
  for (const auto& [depth, period] : {std::pair{2, 1U}, {3, 1U}, {4, 2U}, {7, 2U}, {16, 8U}}) {
    const VerifiedPlan plan =
        verified(Collective::kBroadcast, "one-hop", Reach::kStaged, 3, 0, depth);
    const Program root = link(plan, 0, {256, false});
    for (const SignalCode& put : root.signals) EXPECT_EQ(put.period, 1U);
    const Program peer = link(plan, 1, {256, false});
    ASSERT_EQ(peer.signals.size(), 1U);
    EXPECT_EQ(peer.signals[0].period, period) << "depth " << depth;
  }
}

TEST(Link, DirectPlansLoseTheirEntrySignalsOnlyWhenTheRendezvousGaveThem) {
  const VerifiedPlan plan = verified(Collective::kAllReduce, "direct", Reach::kDirect, 3, -1, 1);
  const Program met = link(plan, 0, {0, true});
  const Program unmet = link(plan, 0, {0, false});
  EXPECT_LT(met.signals.size(), unmet.signals.size());
  EXPECT_LT(met.waits.size(), unmet.waits.size());
  EXPECT_FALSE(met.waits.empty());  // nobody leaves before the others are done
}

TEST(Link, AllRanksAgreeOnTheLayoutOfARegion) {
  const VerifiedPlan plan = verified(Collective::kGather, "one-hop", Reach::kStaged, 5, 2, 3);
  const Program first = link(plan, 0, {1000, false});
  for (int rank = 1; rank < 5; ++rank) {
    const Program program = link(plan, rank, {1000, false});
    EXPECT_EQ(region_bytes(program), region_bytes(first));
    EXPECT_EQ(program.slot_stride, first.slot_stride);
    EXPECT_EQ(program.counters, first.counters);
  }
  EXPECT_EQ(first.slot_stride % kCacheLine, 0U);
  EXPECT_GE(first.slot_stride, sizeof(SlotHeader) + 1000);
}

TEST(Partition, ChunksCoverASliceWithoutGapOrOverlapAndTheFirstIsTheLargest) {
  for (const size_t unit : {1, 8, 64}) {
    for (size_t length = 0; length < 700; length += 7) {
      for (const uint32_t chunks : {1U, 2U, 3U, 8U, 33U}) {
        size_t next = 0;
        for (uint32_t c = 0; c < chunks; ++c) {
          const ChunkRange range = chunk_range(length, chunks, c, unit);
          EXPECT_EQ(range.begin, next);
          EXPECT_LE(range.length, largest_chunk(length, chunks, unit));
          if (range.length > 0 && c > 0) {
            EXPECT_EQ(range.begin % unit, 0U);
          }
          next = range.begin + range.length;
        }
        EXPECT_EQ(next, length);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
