#include "plan/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/support/faults.h"
#include "plan/support/sample_plans.h"

namespace tessera {
namespace {

using testing::expect_fault;
using testing::step;

std::string verdict(Plan plan) {
  const Result<VerifiedPlan> result = verify(std::move(plan));
  return result.ok() ? "ok" : result.status().message();
}

TEST(Verifier, AcceptsCorrectPlans) {
  for (int n = 1; n <= 9; ++n) {
    EXPECT_EQ(verdict(samples::ring_reduce_scatter(n)), "ok") << n;
    EXPECT_EQ(verdict(samples::one_hop_all_reduce(n)), "ok") << n;
    EXPECT_EQ(verdict(samples::direct_all_to_all(n)), "ok") << n;
    EXPECT_EQ(verdict(samples::dissemination_barrier(n)), "ok") << n;
    if (n == 1) continue;
    EXPECT_EQ(verdict(samples::ring_reduce_scatter(n, 1)), "ok") << n;
    EXPECT_EQ(verdict(samples::ring_all_reduce(n)), "ok") << n;
    EXPECT_EQ(verdict(samples::shared_counter_all_reduce(n)), "ok") << n;
    EXPECT_EQ(verdict(samples::direct_all_gather(n)), "ok") << n;
    for (int root = 0; root < n; ++root) {
      EXPECT_EQ(verdict(samples::chain_broadcast(n, root)), "ok") << n << " " << root;
    }
  }
}

TEST(Verifier, AcceptsOneHopAndRingPlansOfManyRanks) {
  EXPECT_EQ(verdict(samples::one_hop_all_reduce(64)), "ok");
  EXPECT_EQ(verdict(samples::ring_all_reduce(64)), "ok");
  EXPECT_EQ(verdict(samples::direct_all_to_all(64)), "ok");
}

// What happened before each step of all passes would fill gigabytes.
TEST(Verifier, AcceptsRingsOfMoreRanksThanCouldBeKeptInMemory) {
  EXPECT_TRUE(verify(samples::ring_all_reduce(384)).ok());
}

TEST(Verifier, MarksTheStepsThatCompleteAReduction) {
  const int n = 3;
  const Result<VerifiedPlan> ring = verify(samples::ring_reduce_scatter(n));
  ASSERT_TRUE(ring.ok());
  for (const RankProgram& program : ring.value().plan().programs) {
    for (int s = 0; s < n; ++s) {
      EXPECT_EQ(program.lanes[0].steps[static_cast<size_t>(s)].completes, s == n - 1);
    }
  }
  const Result<VerifiedPlan> alone = verify(samples::ring_reduce_scatter(1));
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(alone.value().plan().programs[0].lanes[0].steps[0].completes);
  const Result<VerifiedPlan> gather = verify(samples::direct_all_gather(2));
  ASSERT_TRUE(gather.ok());
  EXPECT_FALSE(gather.value().plan().programs[0].lanes[0].steps[1].completes);
}

TEST(Verifier, RejectsAPlanThatReadsAChunkBeforeItsSignal) {
  Plan plan = samples::ring_reduce_scatter(4);
  step(plan, 2, 1).waits.clear();
  expect_fault(plan, Code::kPlanRace,
               "rank 2 lane 0 step 1 (put-reduce) reads scratch chunk 0 without waiting for rank 1 "
               "lane 0 step 0 (put), which writes it");
}

TEST(Verifier, RejectsAPlanThatReusesScratchBeforeTheLastReadOfAnEarlierPass) {
  Plan plan = samples::ring_reduce_scatter(3, 1);
  step(plan, 0, 0).waits.clear();
  expect_fault(plan, Code::kPlanRace,
               "rank 0 lane 0 step 0 (put) writes scratch chunk 0 of rank 1 without waiting for "
               "rank 1 lane 0 step 1 (put-reduce), which reads it 1 pass(es) earlier");
}

TEST(Verifier, RejectsCreditsThatLagMoreThanScratchIsDeep) {
  Plan plan = samples::chain_broadcast(3, 0, 2);
  step(plan, 0, 0).waits[0].lag = 3;
  expect_fault(plan, Code::kPlanRace, "2 pass(es) earlier");
  step(plan, 0, 0).waits[0].lag = 1;  // stricter than needed
  EXPECT_EQ(verdict(plan), "ok");
}

TEST(Verifier, RejectsTwoUnorderedWrites) {
  Plan plan = samples::direct_all_gather(2);
  step(plan, 0, 0, 1).dsts[0].chunk = 1;  // rank 1 puts there too
  expect_fault(plan, Code::kPlanRace, "output chunk 1");
}

TEST(Verifier, RejectsASharedCounterWhoseSignalsMayOvertake) {
  Plan plan = samples::shared_counter_all_reduce(3);
  for (int rank = 0; rank < 3; ++rank) {  // nobody waits any more before its next pass
    plan.programs[static_cast<size_t>(rank)].lanes[0].steps.pop_back();
    step(plan, rank, 2).signals.clear();
    step(plan, rank, 2).waits.clear();
    plan.programs[static_cast<size_t>(rank)].lanes.push_back({});
    plan.programs[static_cast<size_t>(rank)].lanes[1].steps.push_back(step(plan, rank, 2));
    plan.programs[static_cast<size_t>(rank)].lanes[0].steps.pop_back();
    step(plan, rank, 0, 1).waits.push_back({0, 2, 0});
  }
  expect_fault(plan, Code::kPlanCounter, "could satisfy a wait that still lacks the one of");
}

TEST(Verifier, RejectsAPartialSumOfASharedCounter) {
  Plan plan = samples::shared_counter_all_reduce(3);
  step(plan, 0, 2).waits[0].increment = 1;
  expect_fault(plan, Code::kPlanCounter, "only their whole sum can be waited for");
}

TEST(Verifier, RejectsASharedCounterThatOneRankCanRaiseTwiceBeforeAnotherDoes) {
  PlanBuilder builder("fan-in", Collective::kBarrier, 3);
  const int arrived = builder.counter(0);
  builder.lane(0).sync().wait(arrived, 2);
  builder.lane(1).sync().signal(0, arrived);
  builder.lane(2).sync().signal(0, arrived);
  expect_fault(std::move(builder).build(), Code::kPlanCounter,
               "counter 0 of rank 0 is raised by several lanes, and the signal of rank 1 lane 0 "
               "step 0 (signal) in a later pass could satisfy a wait that still lacks the one of "
               "rank 2 lane 0 step 0 (signal)");
}

TEST(Verifier, RejectsWaitsThatNoSignalMeets) {
  Plan plan = samples::ring_reduce_scatter(3);
  step(plan, 1, 2).waits[0].increment = 3;
  expect_fault(plan, Code::kPlanCounter,
               "rank 1 lane 0 step 2 (reduce) waits for 3 of counter 0, but all signals of a pass "
               "raise it by 2");
}

TEST(Verifier, RejectsSignalsThatNobodyWaitsFor) {
  Plan plan = samples::one_hop_all_reduce(2);
  step(plan, 0, 0).signals[0].increment = 2;
  expect_fault(plan, Code::kPlanCounter,
               "counter 0 of rank 1 is raised by 2 in a pass (last by rank 0 lane 0 step 0 (put)), "
               "but its waits are for 1 at most");
}

TEST(Verifier, RejectsADeadlockAndNamesWhoWaitsForWhom) {
  PlanBuilder builder("stuck", Collective::kBarrier, 2);
  const int zero = builder.counter(0);
  const int one = builder.counter(1);
  builder.lane(0).sync().wait(zero);
  builder.lane(0).sync().signal(1, one);
  builder.lane(1).sync().wait(one);
  builder.lane(1).sync().signal(0, zero);
  expect_fault(
      std::move(builder).build(), Code::kPlanDeadlock,
      "no step can run: rank 0 lane 0 step 0 (wait) of pass 0 waits for 1 of pass 0 on "
      "counter 0, signalled by rank 1 lane 0 step 1 (signal); rank 1 lane 0 step 0 (wait)");
}

TEST(Verifier, RejectsMissingAndRepeatedContributions) {
  Plan plan = samples::one_hop_all_reduce(3);
  step(plan, 1, 2).srcs.pop_back();
  expect_fault(plan, Code::kPlanCoverage,
               "output chunk 0 of rank 1 ends without the contribution of rank 2");
  plan = samples::one_hop_all_reduce(3);
  step(plan, 1, 2).srcs.push_back({1, Buffer::kScratch, 2});
  expect_fault(plan, Code::kPlanCoverage, "the contribution of rank 2, which contributes twice");
}

TEST(Verifier, RejectsWrongData) {
  Plan plan = samples::ring_reduce_scatter(3);
  step(plan, 0, 2).srcs[1].chunk = 1;
  expect_fault(plan, Code::kPlanCoverage,
               "rank 0 lane 0 step 2 (reduce) combines input chunk 1, which holds input chunk 1, "
               "with input chunk 0");
  plan = samples::direct_all_to_all(3);
  step(plan, 2, 2).srcs[0].chunk = 1;
  expect_fault(plan, Code::kPlanCoverage,
               "output chunk 0 of rank 2 ends with input chunk 1 instead of 2");
  plan = samples::direct_all_to_all(3);
  step(plan, 0, 0).dsts[0] = {0, Buffer::kOutput, 1};
  step(plan, 0, 2).dsts[0] = {0, Buffer::kOutput, 0};
  expect_fault(plan, Code::kPlanCoverage,
               "output chunk 0 of rank 0 ends with data of rank 1 instead of rank 0");
}

TEST(Verifier, RejectsUndefinedAndStaleReads) {
  Plan plan = samples::chain_broadcast(2, 0);
  plan.programs[1].scratch_chunks = 4;
  step(plan, 1, 0).srcs[0].chunk = 2;
  expect_fault(plan, Code::kPlanCoverage, "reads scratch chunk 2, which was never written");
  plan = samples::chain_broadcast(2, 0, 1);
  Step late;  // reads what the last pass left, before this pass writes it
  late.op = Op::kCopy;
  late.dsts = {{1, Buffer::kScratch, 2}};
  late.srcs = {{1, Buffer::kScratch, 2}};
  plan.programs[1].scratch_chunks = 4;
  plan.programs[1].lanes[0].steps.push_back(late);
  expect_fault(plan, Code::kPlanCoverage, "was never written");
  step(plan, 1, 0).dsts.push_back({1, Buffer::kScratch, 2});
  EXPECT_EQ(verdict(plan), "ok");
  std::swap(step(plan, 1, 0), step(plan, 1, 1));
  step(plan, 1, 0).srcs[0].chunk = 3;
  expect_fault(plan, Code::kPlanCoverage, "reads scratch chunk 3, which was never written");
}

TEST(Verifier, RejectsScratchOfAnEarlierPass) {
  PlanBuilder builder("stale", Collective::kAllGather, 1);
  const int slot = builder.scratch(0);
  builder.lane(0).copy(0, {0, Buffer::kScratch, slot}, {0, Buffer::kInput, 0});
  builder.lane(0).copy(0, {0, Buffer::kOutput, 0}, {0, Buffer::kScratch, slot});
  Plan plan = std::move(builder).build();
  EXPECT_EQ(verdict(plan), "ok");
  plan.programs[0].lanes[0].steps.insert(
      plan.programs[0].lanes[0].steps.begin(),
      plan.programs[0].lanes[0].steps[1]);  // in pass 0 this reads nothing at all
  expect_fault(plan, Code::kPlanCoverage, "which was never written");
}

TEST(Verifier, RejectsAChunkOfOtherLength) {
  Plan plan = samples::ring_all_reduce(3);
  step(plan, 0, 0).srcs[0].chunk = 0;
  expect_fault(plan, Code::kPlanInvalid, "is chunk 0 of its block, but the step moves chunk 2");
  plan = samples::ring_all_reduce(3);
  Step& last = step(plan, 0, 4);
  last.chunk = last.dsts[0].chunk = (last.chunk + 1) % 3;
  expect_fault(plan, Code::kPlanCoverage, "but the step moves chunk");
}

TEST(Verifier, RejectsAccessToAPeersBuffersOutsideOfItsPass) {
  Plan plan = samples::direct_all_to_all(2);
  step(plan, 0, 2).waits.clear();
  expect_fault(
      plan, Code::kPlanRace,
      "rank 0 lane 0 step 2 (get) touches input chunk 0 of rank 1 before rank 1 has entered "
      "the pass");
  plan = samples::direct_all_to_all(2);
  step(plan, 1, 3).waits.clear();
  expect_fault(
      plan, Code::kPlanRace,
      "touches input chunk 0 of rank 1, but rank 1 may end the pass without waiting for it");
}

TEST(Verifier, RejectsABarrierThatARankMayLeaveEarly) {
  Plan plan = samples::dissemination_barrier(3);
  plan.programs[1].lanes[0].steps.pop_back();
  expect_fault(plan, Code::kPlanCoverage,
               "rank 1 may leave the barrier before rank 2 has entered it");
}

// Copies the input to the output first, and reads the input again afterwards.
TEST(Verifier, RejectsPlansThatAreWrongOnlyInPlace) {
  PlanBuilder builder("overwrites", Collective::kAllReduce, 1);
  const int slot = builder.scratch(0);
  builder.lane(0).copy(0, {0, Buffer::kOutput, 0}, {0, Buffer::kInput, 0});
  builder.lane(0).copy(0, {0, Buffer::kScratch, slot}, {0, Buffer::kInput, 0});
  expect_fault(
      std::move(builder).build(), Code::kPlanCoverage,
      "with in-place buffers: rank 0 lane 0 step 1 (copy) reads input chunk 0 after it was "
      "overwritten in place");
}

TEST(Verifier, RejectsRacesThatExistOnlyInPlace) {
  PlanBuilder builder("overwrites", Collective::kReduceScatter, 2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 3; ++i) builder.counter(rank);
  }
  for (int rank = 0; rank < 2;
       ++rank) {  // peers read block `rank` of the other's input: fine so far
    const int peer = 1 - rank;
    builder.lane(rank).sync().signal(peer, 0);
    builder.lane(rank)
        .reduce(0, {{rank, Buffer::kOutput, 0}},
                {{rank, Buffer::kInput, rank}, {peer, Buffer::kInput, rank}})
        .wait(0)
        .signal(peer, 1);
    builder.lane(rank).sync().wait(1);
  }
  Plan plan = std::move(builder).build();
  EXPECT_EQ(verdict(plan), "ok");
  Step extra;  // on another lane: reads what lies under the output in place
  extra.op = Op::kReduce;
  extra.srcs = {{0, Buffer::kInput, 0}};
  extra.dsts = {{0, Buffer::kScratch, 0}};
  plan.programs[0].scratch_chunks = 1;
  plan.programs[0].lanes.push_back({{extra}});
  expect_fault(plan, Code::kPlanRace, "with in-place buffers: ");
}

TEST(Verifier, AcceptsExternalCountersAndWantsAllArrivalsAwaited) {
  PlanBuilder builder("gated", Collective::kAllReduce, 1);
  const int tiles = builder.external_counter(0, 4);
  builder.lane(0).copy(0, {0, Buffer::kOutput, 0}, {0, Buffer::kInput, 0}).wait(tiles, 4);
  Plan plan = std::move(builder).build();
  EXPECT_EQ(verdict(plan), "ok");
  step(plan, 0, 0).waits[0].increment = 3;
  expect_fault(plan, Code::kPlanCounter, "external counter 0 of rank 0 gets 4 arrivals in a pass");
  step(plan, 0, 0).waits[0].increment = 5;
  expect_fault(plan, Code::kPlanCounter, "waits for 5 of counter 0");
  step(plan, 0, 0).waits[0].increment = 4;
  step(plan, 0, 0).signals.push_back({0, tiles, 1});
  expect_fault(plan, Code::kPlanInvalid, "it signals counter 0 of rank 0, which is external");
}

}  // namespace
}  // namespace tessera
