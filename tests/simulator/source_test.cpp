#include "simulator/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/builder.h"
#include "plan/verifier.h"
#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

using ::testing::HasSubstr;

std::vector<const Algorithm*> that_rotate() {
  std::vector<const Algorithm*> found;
  for (int c = 0; c < kCollectives; ++c) {
    for (const Algorithm& algorithm : algorithms(static_cast<Collective>(c))) {
      if (algorithm.rotates) found.push_back(&algorithm);
    }
  }
  return found;
}

TEST(Source, TurningRankZeroGivesExactlyTheAlgorithmsPlan) {
  ASSERT_EQ(that_rotate().size(), 4u);
  for (const Algorithm* algorithm : that_rotate()) {
    for (const int n : {1, 2, 3, 4, 5, 8, 13}) {
      for (const int depth : {1, 2, 3}) {
        AlgorithmParams params;
        params.ranks = n;
        params.scratch_depth = depth;
        const Plan whole = algorithm->build(params);
        params.first_only = true;
        EXPECT_TRUE(rotated(algorithm->build(params)) == whole)
            << algorithm->name << ' ' << to_string(algorithm->collective) << ' ' << n << ' '
            << depth;
      }
    }
  }
}

TEST(Source, TheFirstProgramIsBuiltWithoutTheOthers) {
  for (const Algorithm* algorithm : that_rotate()) {
    AlgorithmParams params;
    params.ranks = 6;
    params.first_only = true;
    const Plan plan = algorithm->build(params);
    for (int rank = 1; rank < 6; ++rank) {
      EXPECT_TRUE(plan.programs[rank] == RankProgram{}) << algorithm->name;
    }
  }
}

TEST(Source, TheCompactFormRunsLikeTheWholePlan) {
  for (const Algorithm* algorithm : that_rotate()) {
    for (const int n : {2, 5, 8}) {
      const machines::Machine machine = machines::star(n, 10, 1);
      const AlgorithmParams params = run::params_for(algorithm->collective, n, 1);
      const Result<Source> compact = Source::of(*algorithm, params);
      const Result<Source> whole = Source::of(algorithm->build(params));
      ASSERT_TRUE(compact.ok() && whole.ok());
      EXPECT_TRUE(compact.value().compact());
      EXPECT_FALSE(whole.value().compact());
      EXPECT_EQ(compact.value().steps_per_pass(), whole.value().steps_per_pass());
      const Message message{10007, 4, 3001};  // ragged: chunks and slices differ
      const Result<Outcome> a = simulate(compact.value(), machine.routes(), message, Cost{});
      const Result<Outcome> b = simulate(whole.value(), machine.routes(), message, Cost{});
      ASSERT_TRUE(a.ok() && b.ok());
      EXPECT_EQ(a.value().rank_us, b.value().rank_us);
      EXPECT_EQ(a.value().link_bytes, b.value().link_bytes);
      EXPECT_EQ(a.value().events, b.value().events);
      EXPECT_EQ(a.value().critical_path.text, b.value().critical_path.text);
    }
  }
}

TEST(Source, DescribesAStepInWords) {
  const Plan plan = find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged)
                        ->build(run::params_for(Collective::kAllReduce, 4, 1));
  EXPECT_EQ(Source::of(plan).value().describe(1, 0, 0),
            "put chunk 0 to rank 2, raise counter 0 of rank 2");
}

TEST(Source, NamesAnIdThatDoesNotExist) {
  PlanBuilder plan("mine", Collective::kBarrier, 2);
  plan.lane(0).sync().signal(1, 7);
  const Result<Source> source = Source::of(std::move(plan).build());
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), Code::kPlanInvalid);
  EXPECT_EQ(source.status().message(),
            "plan \"mine\": rank 0 raises counter 7 of rank 1, which does not exist");
}

TEST(Source, RefusesARankThatDoesNotExist) {
  PlanBuilder plan("mine", Collective::kAllReduce, 2);
  plan.lane(0).copy(0, {5, Buffer::kScratch, 0}, {0, Buffer::kInput, 0});
  const Result<Source> source = Source::of(std::move(plan).build());
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.status().message(), HasSubstr("names rank 5 of 2 ranks"));
}

TEST(Source, SaysWhenAnAlgorithmHasNoPlanForThatManyRanks) {
  const Algorithm* doubling =
      find_algorithm(Collective::kAllGather, "recursive-doubling", Reach::kStaged);
  const Result<Source> source =
      Source::of(*doubling, run::params_for(Collective::kAllGather, 3, 1));
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().message(), "recursive-doubling all-gather has no plan for 3 ranks");
}

}  // namespace
}  // namespace tessera::simulator
