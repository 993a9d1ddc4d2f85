// Where those who compete for a size stand after some passes.
#include "tools/tune_tool/standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

// Contestants of these protocols, at one size.
Field field_of(const std::vector<Protocol>& protocols) {
  Field field;
  field.block_bytes = {1024};
  for (const Protocol protocol : protocols)
    field.contestants.push_back({{protocol, {}, 0}, {}, {}});
  return field;
}

Field staged(size_t count) { return field_of(std::vector<Protocol>(count, Protocol::kStaged)); }

Runner runner(size_t who, std::vector<double> times, bool in = true) {
  return {who, in, std::move(times)};
}

TEST(Standing, ATimeCountsAsInAUsualPass) {
  const std::vector<Runner> runners{runner(0, {8.0, 4.0, 4.0, 4.0}),
                                    runner(1, {8.8, 4.4, 4.4, 4.4}), runner(2, {12.0}, false)};
  EXPECT_THAT(settled(runners, staged(3)),
              Pointwise(DoubleNear(1e-9), std::vector<double>{4.0, 4.4, 6.0}));
}

TEST(Standing, TwoWhoTakeTurnsAtBeingSlowCountAsTheyAreAsARule) {
  const std::vector<Runner> runners{runner(0, {4, 6, 4, 6}), runner(1, {6, 4, 6, 4})};
  EXPECT_THAT(settled(runners, staged(2)), Pointwise(DoubleNear(1e-9), std::vector<double>{5, 5}));
}

TEST(Standing, ATimeThatIsMissingInTheMiddleCountsForNothing) {
  EXPECT_DOUBLE_EQ(settled({runner(0, {3, 0, 3, 0, 3})}, staged(1))[0], 3);
}

TEST(Standing, WhoLeftIsNoBetterThanWhoStayed) {
  // The first pass was slow for those who stayed and not for who left.
  const std::vector<Runner> runners{runner(0, {9.0, 3.0, 3.0}), runner(1, {5.0}, false)};
  const std::vector<double> times = settled(runners, staged(2));
  EXPECT_DOUBLE_EQ(times[0], 3.0);
  EXPECT_GT(times[1], 3.0);
}

TEST(Standing, AMachineOfTwoSpeedsCountsAsInBetweenAndAStallNotAtAll) {
  const std::vector<Runner> speeds{runner(0, {2, 6, 2, 6, 2, 6, 2})};
  EXPECT_GT(settled(speeds, staged(1))[0], 2.5);
  EXPECT_LT(settled(speeds, staged(1))[0], 5.5);
  const std::vector<Runner> stall{runner(0, {2, 2, 900, 2, 2})};
  EXPECT_DOUBLE_EQ(settled(stall, staged(1))[0], 2);
}

TEST(Standing, WhoNeverRanHasNoTime) {
  EXPECT_THAT(settled({runner(0, {}), runner(1, {0, 5})}, staged(2)), ElementsAre(0, 5));
}

TEST(Standing, OnlyTheFirstFewWhoAreNearTheBestStay) {
  std::vector<Runner> runners{runner(0, {1.0}), runner(1, {1.1}), runner(2, {1.05}),
                              runner(3, {1.2}), runner(4, {1.02})};
  narrow(runners, staged(5), 0, {1.15, 3});
  std::vector<bool> in;
  for (const Runner& each : runners) in.push_back(each.in);
  EXPECT_THAT(in, ElementsAre(true, false, true, false, true));
}

TEST(Standing, EveryKindOfBuffersKeepsItsBest) {
  const Field field = field_of({Protocol::kDirect, Protocol::kSingleCopy, Protocol::kStaged,
                                Protocol::kSingleCopy, Protocol::kStaged});
  std::vector<Runner> runners{runner(0, {1}), runner(1, {5}), runner(2, {9}), runner(3, {9}),
                              runner(4, {20})};
  narrow(runners, field, 0, {1.5, 3});
  EXPECT_TRUE(runners[0].in);
  EXPECT_TRUE(runners[1].in);
  EXPECT_TRUE(runners[2].in)
      << "nobody else can carry calls whose buffers only their owner reaches";
  EXPECT_FALSE(runners[3].in);
  EXPECT_FALSE(runners[4].in);
}

TEST(Standing, WhoLeadsElsewhereStaysToo) {
  std::vector<Runner> runners{runner(0, {1.0}), runner(1, {9.0}), runner(2, {9.0})};
  EXPECT_THAT(leaders(runners, staged(3)), ::testing::Each(0));
  narrow(runners, staged(3), 0, {1.15, 3}, {2});
  EXPECT_FALSE(runners[1].in);
  EXPECT_TRUE(runners[2].in);
}

TEST(Standing, WhoIsJudgedStaysHoweverSlow) {
  Field field = staged(3);
  field.chosen = {2};
  std::vector<Runner> runners{runner(0, {1}), runner(1, {1}), runner(2, {50}), runner(3, {50})};
  narrow(runners, field, 0, {1.15, 3});
  EXPECT_TRUE(runners[2].in && runners[3].in);
  only_who_is_judged(runners, field, 0);
  EXPECT_TRUE(runners[0].in && runners[2].in && runners[3].in);
  EXPECT_FALSE(runners[1].in);
}

TEST(Standing, AVerdictCountsThePassesInWhichAllTookPartFromTheNamedOneOn) {
  Field field = staged(2);
  field.chosen = {1};
  const std::vector<Runner> runners{runner(0, {9, 9, 2, 0, 4, 2}), runner(1, {1, 1, 3, 7, 6, 3}),
                                    runner(2, {9, 9, 4, 4, 8, 4})};
  const Verdict found = verdict(runners, field, 0, 2);
  EXPECT_EQ(found.best, 0U);
  EXPECT_DOUBLE_EQ(found.best_us, 2);
  EXPECT_DOUBLE_EQ(found.choice, 1.5);
  EXPECT_DOUBLE_EQ(found.automatic, 2);
  EXPECT_EQ(verdict(runners, field, 0, 4).automatic_us, 0) << "too few passes";
}

TEST(Standing, TheChosenOneCanBeTheBest) {
  Field field = staged(1);
  field.chosen = {0};
  const Verdict found = verdict({runner(0, {2, 2, 2}), runner(1, {3, 3, 3})}, field, 0, 0);
  EXPECT_EQ(found.best, 0U);
  EXPECT_DOUBLE_EQ(found.choice, 1);
  EXPECT_DOUBLE_EQ(found.automatic, 1.5);
}

}  // namespace
}  // namespace tessera::tune
