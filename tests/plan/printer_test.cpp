#include "plan/printer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/support/sample_plans.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(PlanPrinter, WritesOneLinePerStep) {
  const Result<VerifiedPlan> plan = verify(samples::ring_reduce_scatter(2));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(to_text(plan.value().plan()),
            "plan \"ring\": reduce-scatter over 2 rank(s), 1 chunk(s) per block, scratch depth 2\n"
            "rank 0: 1 scratch chunk(s), 2 counter(s)\n"
            " lane 0\n"
            "     0  put         input[1] -> scratch[0]@1  wait c1>=1 of pass -2  signal c0+1@1\n"
            "     1  reduce      scratch[0] + input[0] -> output[0]  wait c0>=1  signal c1+1@1"
            "  completes\n"
            "rank 1: 1 scratch chunk(s), 2 counter(s)\n"
            " lane 0\n"
            "     0  put         input[0] -> scratch[0]@0  wait c1>=1 of pass -2  signal c0+1@0\n"
            "     1  reduce      scratch[0] + input[1] -> output[0]  wait c0>=1  signal c1+1@0"
            "  completes\n");
}

TEST(PlanPrinter, ShowsRunsRootsAndExternalCounters) {
  Plan plan = samples::chain_broadcast(2, 1);
  plan.programs[0].counters.push_back({CounterKind::kExternal, 7});
  const std::string text = to_text(plan);
  EXPECT_THAT(text, HasSubstr(", root 1, "));
  EXPECT_THAT(text, HasSubstr("input[0..1] -> output[0..1], scratch[0..1]@0"));
  EXPECT_THAT(text, HasSubstr("c2 external with 7 arrival(s)"));
}

TEST(PlanPrinter, NamesStepsByWhoOwnsTheOperands) {
  const Ref mine{0, Buffer::kScratch, 0};
  const Ref theirs{1, Buffer::kScratch, 0};
  const auto name = [](Op op, std::vector<Ref> dsts, std::vector<Ref> srcs) {
    Step step;
    step.op = op;
    step.dsts = std::move(dsts);
    step.srcs = std::move(srcs);
    return std::string(step_name(step, 0));
  };
  EXPECT_EQ(name(Op::kCopy, {mine}, {mine}), "copy");
  EXPECT_EQ(name(Op::kCopy, {mine, theirs}, {mine}), "put");
  EXPECT_EQ(name(Op::kCopy, {mine}, {theirs}), "get");
  EXPECT_EQ(name(Op::kReduce, {mine}, {mine, mine}), "reduce");
  EXPECT_EQ(name(Op::kReduce, {theirs}, {mine, mine}), "put-reduce");
  EXPECT_EQ(name(Op::kReduce, {mine}, {mine, theirs}), "get-reduce");
  Step sync;
  EXPECT_STREQ(step_name(sync, 0), "sync");
  sync.waits.push_back({});
  EXPECT_STREQ(step_name(sync, 0), "wait");
  sync.signals.push_back({});
  EXPECT_STREQ(step_name(sync, 0), "sync");
  sync.waits.clear();
  EXPECT_STREQ(step_name(sync, 0), "signal");
}

TEST(PlanPrinter, DrawsABoxPerStepAndAnArrowPerAwaitedSignal) {
  const int n = 4;
  const Result<std::string> picture = to_svg(samples::ring_reduce_scatter(n));
  ASSERT_TRUE(picture.ok());
  const std::string& svg = picture.value();
  EXPECT_EQ(count(svg, "<rect "), static_cast<size_t>(n * n));
  EXPECT_THAT(svg, HasSubstr("rank 3 lane 0"));
  // Step s waits for s signals; the credits of an earlier pass draw nothing.
  EXPECT_EQ(count(svg, "<line "), static_cast<size_t>(n * (1 + 2 + 3)));
  EXPECT_EQ(count(svg, "<"), count(svg, ">"));
  EXPECT_THAT(svg, Not(HasSubstr("never run")));
}

TEST(PlanPrinter, CountsTheStepsThatCannotRun) {
  Plan plan = samples::ring_reduce_scatter(3);
  plan.name = "a<b";
  plan.programs[0].lanes[0].steps[0].signals.clear();
  const Result<std::string> picture = to_svg(plan);
  ASSERT_TRUE(picture.ok());
  EXPECT_THAT(picture.value(), HasSubstr("a&lt;b: "));
  EXPECT_THAT(picture.value(), HasSubstr("step(s) never run"));
}

TEST(PlanPrinter, RefusesPicturesThatNobodyCouldRead) {
  PlanBuilder plan("long", Collective::kBarrier, 1);
  for (int i = 0; i < 20001; ++i) plan.lane(0).sync();
  EXPECT_EQ(to_svg(std::move(plan).build()).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera
