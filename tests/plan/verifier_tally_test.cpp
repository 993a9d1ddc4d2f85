// Accumulations: what the verifier wants of the steps that share a tally.
#include <gtest/gtest.h>

#include "plan/printer.h"
#include "plan/support/faults.h"
#include "plan/support/sample_plans.h"

namespace tessera::testing {
namespace {

constexpr int kFinish = 0, kSend = 2, kFirst = 3, kSecond = 5;  // lanes of rank 0
constexpr int kSlot = 3;                                        // where it adds

Plan sample() { return samples::any_order_reduce_scatter(3); }

template <class Change>
void expect_refused(Change change, Code code, const std::string& text) {
  Plan plan = sample();
  change(plan);
  expect_fault(plan, code, text);
}

TEST(Accumulations, VerifyAndDoNotCompleteASum) {
  const Result<VerifiedPlan> plan = verify(sample());
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::vector<Lane>& lanes = plan->plan().programs[0].lanes;
  EXPECT_FALSE(lanes[kFirst].steps[0].completes);
  EXPECT_TRUE(lanes[kFinish].steps[0].completes);
  EXPECT_NE(to_text(plan->plan()).find("accumulate  scratch[1] -> scratch[3]"), std::string::npos);
}

TEST(Accumulations, AddToSlotsOfTheirOwnRankUnderATally) {
  expect_refused(
      [](Plan& p) {
        step(p, 0, 0, kFirst).dsts[0] = {0, Buffer::kOutput, 0};
      },
      Code::kPlanCounter, "adds to output chunk 0; it can to slots of its own rank only");
  expect_refused([](Plan& p) { step(p, 0, 0, kFirst).dsts[0].rank = 1; }, Code::kPlanCounter,
                 "adds to scratch chunk 3 of rank 1");
  expect_refused([](Plan& p) { step(p, 0, 0, kFirst).signals[0].increment = 2; },
                 Code::kPlanCounter, "rank 0 lane 3 step 0 (accumulate) has no tally");
  expect_refused([](Plan& p) { step(p, 0, 0, kFirst).signals.clear(); }, Code::kPlanCounter,
                 "has no tally");
  expect_refused(
      [](Plan& p) {
        Step& add = step(p, 0, 0, kFirst);
        add.srcs.push_back(add.srcs[0]);
      },
      Code::kPlanInvalid, "an accumulation has 1 source and 1 destination, not 2 and 1");
}

TEST(Accumulations, OfOneTallyHaveOneSlotForThemselves) {
  expect_refused([](Plan& p) { step(p, 0, 0, kSecond).dsts[0].chunk = 0; }, Code::kPlanCounter,
                 "adds to another run of slots than others of the tally 0");
  expect_refused(
      [](Plan& p) {
        p.programs[0].counters.push_back({});
        step(p, 0, 0, kSecond).signals[0].counter =
            static_cast<int>(p.programs[0].counters.size()) - 1;
      },
      Code::kPlanCounter, "adds to scratch chunk 3, which has another tally");
  expect_refused(
      [](Plan& p) {
        step(p, 0, 0, kSend).signals.push_back({0, 0, 1});
      },
      Code::kPlanCounter, "raises counter 0 of rank 0, which is a tally");
  expect_refused(
      [](Plan& p) {
        step(p, 0, 0, kFinish).dsts.push_back({0, Buffer::kScratch, kSlot});
      },
      Code::kPlanCounter, "writes scratch chunk 3, which is for accumulations");
}

TEST(Accumulations, AreReadWhenAllHaveAdded) {
  expect_refused([](Plan& p) { step(p, 0, 0, kFinish).waits[0].increment = 1; }, Code::kPlanCounter,
                 "only their whole sum can be waited for");
  expect_refused(
      [](Plan& p) {
        // Slot 0 is nobody's.
        p.programs[0].lanes[1].steps.push_back({Op::kCopy,
                                                0,
                                                1,
                                                {{0, Buffer::kScratch, 0}},
                                                {{0, Buffer::kScratch, kSlot}},
                                                {},
                                                {},
                                                false});
      },
      Code::kPlanRace, "reads scratch chunk 3 without waiting for rank 0 lane");
}

TEST(Accumulations, OfTheNextPassWaitForWhoReadsTheSum) {
  expect_refused(
      [](Plan& p) {
        for (const int lane : {kFirst, kSecond})
          std::erase_if(step(p, 0, 0, lane).waits, [](const Wait& wait) { return wait.lag == 1; });
      },
      Code::kPlanCounter, "could satisfy a wait that still lacks");
  // One of them comes after the other, which waits, and still may come before who reads the sum.
  expect_refused(
      [](Plan& p) {
        std::vector<Wait>& waits = step(p, 0, 0, kSecond).waits;
        waits = {waits[0], {4, 1, 0}, {5, 1, 1}};
      },
      Code::kPlanRace, "adds to scratch chunk 3 without waiting for rank 0 lane 0 step 0 (reduce)");
}

TEST(Accumulations, AddEachPartOnceAndLeaveOneToOthers) {
  expect_refused([](Plan& p) { step(p, 0, 0, kSecond).srcs = step(p, 0, 0, kFirst).srcs; },
                 Code::kPlanRace, "without waiting for");
  expect_refused(
      [](Plan& p) {
        Step& finish = step(p, 0, 0, kFinish);
        finish.op = Op::kCopy;
        finish.srcs.pop_back();
        Step own = step(p, 0, 0, kFirst);
        own.srcs[0] = {0, Buffer::kInput, 0};
        own.waits = {{1, 1, 1}};
        own.signals.resize(1);
        p.programs[0].lanes[1].steps.push_back(own);
        finish.waits[0].increment = 3;
      },
      Code::kPlanCoverage, "may complete scratch chunk 3");
}

}  // namespace
}  // namespace tessera::testing
