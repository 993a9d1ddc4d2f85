// Plans that are malformed, whatever they would compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "plan/limits.h"
#include "plan/support/faults.h"
#include "plan/support/sample_plans.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

using testing::expect_fault;
using testing::step;

struct FormCase {
  const char* text;
  std::function<void(Plan&)> damage;
};

TEST(Verifier, RejectsMalformedPlans) {
  const std::vector<FormCase> cases = {
      {"printable ASCII", [](Plan& p) { p.name = "a\nb"; }},
      {"printable ASCII", [](Plan& p) { p.name.assign(kMaxNameBytes + 1, 'x'); }},
      {"unknown collective 99", [](Plan& p) { p.collective = static_cast<Collective>(99); }},
      {"0 ranks are out of range 1..4096", [](Plan& p) { p.ranks = 0; }},
      {"4097 ranks", [](Plan& p) { p.ranks = kMaxRanks + 1; }},
      {"3 programs for 2 ranks", [](Plan& p) { p.ranks = 2; }},
      {"root 1 is given, but all-reduce has no root", [](Plan& p) { p.root = 1; }},
      {"root -1 is out of range 0..2", [](Plan& p) { p.collective = Collective::kReduce; }},
      {"send-recv has 2 ranks", [](Plan& p) { p.collective = Collective::kSendRecv; }},
      {"0 chunks per block", [](Plan& p) { p.chunks_per_block = 0; }},
      {"scratch depth 0", [](Plan& p) { p.scratch_depth = 0; }},
      {"scratch depth 65", [](Plan& p) { p.scratch_depth = kMaxScratchDepth + 1; }},
      {"rank 1 has 65 lanes", [](Plan& p) { p.programs[1].lanes.resize(kMaxLanes + 1); }},
      {"rank 2 has -1 scratch chunks", [](Plan& p) { p.programs[2].scratch_chunks = -1; }},
      {"a step counter has none", [](Plan& p) { p.programs[0].counters[0].arrivals = 1; }},
      {"an external counter has at least 1",
       [](Plan& p) { p.programs[0].counters[0].kind = CounterKind::kExternal; }},
      {"rank 0 lane 0 step 0 (put): chunk 1 is out of range 0..0",
       [](Plan& p) { step(p, 0, 0).chunk = 1; }},
      {"a run of 0 chunks", [](Plan& p) { step(p, 0, 0).chunks = 0; }},
      {"input chunk 0 (run of 4) is out of range 0..0", [](Plan& p) { step(p, 0, 0).chunks = 4; }},
      {"rank 3 is out of range 0..2", [](Plan& p) { step(p, 0, 0).dsts[0].rank = 3; }},
      {"scratch chunk 3 of rank 1", [](Plan& p) { step(p, 0, 0).dsts[0].chunk = 3; }},
      {"the input is never written",
       [](Plan& p) { step(p, 0, 0).dsts[0].buffer = Buffer::kInput; }},
      {"a copy has 1 source", [](Plan& p) { step(p, 0, 0).srcs.clear(); }},
      {"a copy has 1 source", [](Plan& p) { step(p, 0, 0).dsts.clear(); }},
      {"a reduce has sources", [](Plan& p) { step(p, 0, 2).srcs.clear(); }},
      {"it moves no data but names 2 operands", [](Plan& p) { step(p, 0, 0).op = Op::kSync; }},
      {"unknown operation 7", [](Plan& p) { step(p, 0, 0).op = static_cast<Op>(7); }},
      {"it writes scratch chunk 0 of rank 1 twice",
       [](Plan& p) { step(p, 0, 0).dsts.push_back(step(p, 0, 0).dsts[0]); }},
      {"it waits for counter 3, but rank 0 has 3 counters",
       [](Plan& p) { step(p, 0, 2).waits[0].counter = 3; }},
      {"it waits for one counter twice",
       [](Plan& p) { step(p, 0, 2).waits.push_back(step(p, 0, 2).waits[0]); }},
      {"a wait's increment 0", [](Plan& p) { step(p, 0, 2).waits[0].increment = 0; }},
      {"lag 65 is out of range", [](Plan& p) { step(p, 0, 2).waits[0].lag = kMaxLag + 1; }},
      {"it signals rank -1", [](Plan& p) { step(p, 0, 0).signals[0].rank = -1; }},
      {"it signals counter 3, but rank 1 has 3 counters",
       [](Plan& p) { step(p, 0, 0).signals[0].counter = 3; }},
      {"it signals one counter twice",
       [](Plan& p) { step(p, 0, 0).signals.push_back(step(p, 0, 0).signals[0]); }},
      {"a signal's increment 0", [](Plan& p) { step(p, 0, 0).signals[0].increment = 0; }},
  };
  for (const FormCase& form : cases) {
    Plan plan = samples::one_hop_all_reduce(3);
    form.damage(plan);
    expect_fault(plan, Code::kPlanInvalid, form.text);
  }
}

TEST(Verifier, RejectsAReduceInACollectiveThatDoesNotReduce) {
  Plan plan = samples::direct_all_gather(2);
  step(plan, 0, 0, 1).op = Op::kReduce;
  expect_fault(plan, Code::kPlanInvalid, "all-gather does not reduce");
}

TEST(Verifier, RejectsBuffersThatTheCollectiveDoesNotHave) {
  Plan plan = samples::chain_broadcast(3, 0);
  step(plan, 1, 0).srcs[0] = {1, Buffer::kInput, 0};
  expect_fault(plan, Code::kPlanInvalid, "rank 1 has no input in broadcast");
}

TEST(Verifier, RejectsOverlappingRuns) {
  Plan plan = samples::chain_broadcast(3, 0);
  plan.programs[1].scratch_chunks = 3;
  step(plan, 1, 0).dsts.push_back({1, Buffer::kScratch, 1});
  expect_fault(plan, Code::kPlanInvalid, "scratch chunk 0 and scratch chunk 1 overlap");
}

TEST(Verifier, RefusesPlansTooLargeToVerify) {
  PlanBuilder builder("huge", Collective::kBarrier, 1, -1, 1, kMaxScratchDepth);
  builder.scratch(0, kMaxScratchChunks);
  expect_fault(std::move(builder).build(), Code::kPlanInvalid,
               "plan \"huge\" is too large to verify");
  PlanBuilder longer("long", Collective::kBarrier, 1, -1, 1, kMaxScratchDepth);
  for (int i = 0; i < kMaxSteps; ++i) longer.lane(0).sync();
  expect_fault(std::move(longer).build(), Code::kPlanInvalid, "too large to verify");
}

}  // namespace
}  // namespace tessera
