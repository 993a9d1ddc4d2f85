// Waits, signals, passes and errors: a simulation does what the plan says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/builder.h"
#include "simulator/simulate.h"
#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

using machines::Machine;
using ::testing::HasSubstr;

constexpr double kGbs = 10;
constexpr double kLatency = 2;
constexpr size_t kSlice = 1 << 16;
constexpr double kPut = 4.0 * kSlice / (kGbs * 1e3);

Ref in(int rank) { return {rank, Buffer::kInput, 0}; }
Ref out(int rank) { return {rank, Buffer::kOutput, 0}; }
Ref scratch(int rank) { return {rank, Buffer::kScratch, 0}; }

Result<Outcome> try_simulate(const Plan& plan, const Machine& machine, const Message& message,
                             const Cost& cost = run::costs({}),
                             const SimulateOptions& options = {}) {
  const Result<Source> source = Source::of(plan);
  if (!source.ok()) return source.status();
  return simulate(source.value(), machine.routes(), message, cost, options);
}

Outcome simulated(const Plan& plan, const Message& message, const Cost& cost = run::costs({})) {
  Result<Outcome> outcome =
      try_simulate(plan, machines::star(plan.ranks, kGbs, kLatency), message, cost);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

// Rank 0 puts, rank 1 copies and, if `depth` is not 0, gives a credit back; put p waits for credit
// p - depth.
Plan pipe(uint32_t depth) {
  PlanBuilder plan("pipe", Collective::kSendRecv, 2);
  const int arrived = plan.counter(1), credit = plan.counter(0);
  StepRef put = plan.lane(0).copy(0, scratch(1), in(0));
  put.signal(1, arrived);
  StepRef take = plan.lane(1).copy(0, out(1), scratch(1));
  take.wait(arrived);
  if (depth > 0) {
    put.wait(credit, 1, depth);
    take.signal(0, credit);
  }
  return std::move(plan).build();
}

TEST(Semantics, ASignalTakesItsLatencyBehindTheData) {
  const Outcome outcome = simulated(pipe(0), {kSlice, 4, 0});
  EXPECT_NEAR(outcome.rank_us[0], kPut, 1e-3);
  EXPECT_NEAR(outcome.rank_us[1], kPut + kLatency, 1e-2);
}

TEST(Semantics, StepAndSignalCostsAreOnTheWay) {
  const Outcome outcome =
      simulated(pipe(0), {kSlice, 4, 0}, run::costs({.step_us = 1, .signal_us = 3}));
  EXPECT_NEAR(outcome.rank_us[0], 1 + kPut + 3, 1e-2);
  EXPECT_NEAR(outcome.rank_us[1], 1 + kPut + 3 + kLatency + 1, 1e-2);
}

TEST(Semantics, PassesPipeline) {
  const Outcome outcome = simulated(pipe(0), {10 * kSlice, 4, kSlice});
  EXPECT_EQ(outcome.passes, 10u);
  EXPECT_NEAR(outcome.total_us, 10 * kPut + kLatency, 0.1);
}

TEST(Semantics, TheLastSliceMayBeShorter) {
  const Outcome outcome = simulated(pipe(0), {kSlice + kSlice / 2, 4, kSlice});
  EXPECT_EQ(outcome.passes, 2u);
  EXPECT_NEAR(outcome.total_us, 1.5 * kPut + kLatency, 0.1);
}

// With one copy of scratch a put waits for the reader of the pass before: nothing overlaps.
TEST(Semantics, AWaitWithALagHoldsPassesBack) {
  const Message message{10 * kSlice, 4, kSlice};
  const double copy = 4.0 * kSlice / (kGbs * 1e3);
  const Cost cost = run::costs({.copy_gbs = kGbs});
  EXPECT_NEAR(simulated(pipe(1), message, cost).total_us, 10 * (kPut + copy) + 19 * kLatency, 0.1);
  // Two copies: the copy of one pass runs beside the put of the next.
  EXPECT_NEAR(simulated(pipe(2), message, cost).total_us, 10 * kPut + copy + 9 * kLatency, 0.1);
  EXPECT_NEAR(simulated(pipe(8), message, cost).total_us, 10 * kPut + copy + kLatency, 0.1);
}

TEST(Semantics, AGetWaitsForRequestAndAnswer) {
  PlanBuilder plan("get", Collective::kSendRecv, 2);
  plan.lane(1).copy(0, out(1), in(0));
  EXPECT_NEAR(simulated(std::move(plan).build(), {kSlice, 4, 0}).total_us, kPut + 2 * kLatency,
              1e-3);
}

TEST(Semantics, AReductionCostsItsSourcesAfterTheFirst) {
  PlanBuilder plan("sum", Collective::kAllReduce, 1);
  plan.lane(0).reduce(0, {out(0)}, {in(0), scratch(0), scratch(0)});
  EXPECT_NEAR(
      simulated(std::move(plan).build(), {kSlice, 4, 0}, run::costs({.reduce_gbs = kGbs})).total_us,
      2 * kPut, 1e-3);
}

TEST(Semantics, TilesOfAComputeKernelArriveOneAfterTheOther) {
  PlanBuilder plan("tiles", Collective::kSendRecv, 1);
  const int first = plan.external_counter(0, 4), second = plan.external_counter(0, 2);
  plan.lane(0).sync().wait(first, 4);
  plan.lane(0, 1).sync().wait(second, 1);
  const Plan tiles = std::move(plan).build();
  Cost cost = run::costs({});
  EXPECT_EQ(simulated(tiles, {2, 4, 1}, cost).total_us, 0);
  cost.gpu.tile_us = 10;
  cost.gpu.launch_us = 7;
  EXPECT_NEAR(simulated(tiles, {1, 4, 0}, cost).total_us, 7 + 50, 1e-3);
  EXPECT_NEAR(simulated(tiles, {2, 4, 1}, cost).total_us, 7 + 60 + 50, 1e-3);
}

TEST(Semantics, TilesArriveInTheOrderThatIsGiven) {
  PlanBuilder plan("tiles", Collective::kSendRecv, 1);
  const int first = plan.external_counter(0, 4);
  static_cast<void>(plan.external_counter(0, 2));
  const int done = plan.counter(0);
  plan.lane(0).sync().wait(first, 4).signal(0, done);
  plan.lane(0, 1).sync().wait(done);
  const Plan tiles = std::move(plan).build();
  Cost cost = run::costs({});
  cost.gpu.tile_us = 10;
  std::vector<double> raised;
  const auto at = [&](bool last_first) {
    SimulateOptions options;
    if (last_first) options.tile_order = [](int, uint32_t i) { return 1 - i; };
    options.raised = [&](int, uint32_t counter, double us) {
      EXPECT_EQ(counter, static_cast<uint32_t>(done));
      raised.push_back(us);
    };
    const Result<Outcome> outcome =
        try_simulate(tiles, machines::star(1, kGbs, kLatency), {1, 4, 0}, cost, options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  };
  at(false);
  at(true);
  ASSERT_EQ(raised.size(), 2u);
  EXPECT_NEAR(raised[0], 40, 1);
  EXPECT_NEAR(raised[1], 60, 1);
}

TEST(Semantics, EmptyChunksMoveNothing) {
  const Outcome outcome = simulated(pipe(0), {0, 4, 0});
  EXPECT_NEAR(outcome.total_us, kLatency, 1e-3);
  EXPECT_EQ(outcome.link_bytes, std::vector<uint64_t>(4));
}

TEST(Semantics, EqualArgumentsGiveEqualOutcomes) {
  const Machine machine = machines::star(7, kGbs, kLatency);
  SimulateOptions options;
  options.trace = true;
  for (const char* name : {"ring", "two-phase", "double-tree", "halving-doubling"}) {
    const auto once = [&] {
      return run::algorithm(Collective::kAllReduce, name, machine, 100003, Cost{}, 3, 7001,
                            options);
    };
    const Outcome a = once(), b = once();
    EXPECT_EQ(a.rank_us, b.rank_us);
    EXPECT_EQ(a.events, b.events);
    EXPECT_EQ(a.critical_path.text, b.critical_path.text);
    ASSERT_EQ(a.timeline->steps.size(), b.timeline->steps.size());
    for (size_t i = 0; i < a.timeline->steps.size(); ++i) {
      EXPECT_EQ(a.timeline->steps[i].begin, b.timeline->steps[i].begin);
      EXPECT_EQ(a.timeline->steps[i].before, b.timeline->steps[i].before);
    }
  }
}

TEST(Semantics, TheCriticalPathAddsUpToTheTotal) {
  const Machine machine = machines::star(6, kGbs, kLatency);
  for (int c = 0; c < kCollectives; ++c) {
    for (const Algorithm& algorithm : algorithms(static_cast<Collective>(c))) {
      if (algorithm.reach != Reach::kStaged || !algorithm.supports(6)) continue;
      const CriticalPath path = [&] {
        Outcome outcome =
            run::algorithm(algorithm.collective, algorithm.name, machine, 50000, Cost{}, 4, 9000);
        EXPECT_NEAR(outcome.critical_path.overhead_us + outcome.critical_path.local_us +
                        outcome.critical_path.wire_us + outcome.critical_path.latency_us +
                        outcome.critical_path.waiting_us,
                    outcome.total_us, 1e-3)
            << algorithm.name << ' ' << to_string(algorithm.collective);
        return outcome.critical_path;
      }();
      EXPECT_GT(path.steps, 0u);
      EXPECT_THAT(path.text, HasSubstr("steps and"));
    }
  }
}

TEST(SimulateErrors, ADeadlockNamesTheStepsThatWait) {
  PlanBuilder plan("circle", Collective::kBarrier, 2);
  const int a = plan.counter(0), b = plan.counter(1);
  plan.lane(0).sync().wait(a).signal(1, b);
  plan.lane(1).sync().wait(b).signal(0, a);
  const Result<Outcome> outcome =
      try_simulate(std::move(plan).build(), machines::star(2, kGbs, kLatency), {0, 4, 0});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), Code::kPlanDeadlock);
  EXPECT_EQ(
      outcome.status().message(),
      "\"circle\" stops at 0.000 us: 2 lanes wait for ever; rank 0 lane 0 step 0 (sync, raise "
      "counter 0 of rank 1) of pass 0 waits for counter 0: it has 0 of 1; rank 1 lane 0 step 0 "
      "(sync, raise counter 0 of rank 0) of pass 0 waits for counter 0: it has 0 of 1");
}

TEST(SimulateErrors, APlanForOtherRanksIsRefused) {
  const Result<Outcome> outcome =
      try_simulate(pipe(0), machines::star(3, kGbs, kLatency), {1, 4, 0});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().message(), "plan \"pipe\" is for 2 ranks; on the machine are 3");
}

TEST(SimulateErrors, RanksWithoutAWayBetweenThemAreNamed) {
  Machine machine = machines::star(1, kGbs, kLatency);
  machine.nodes.push_back(
      machine.graph.add_node(machines::node_of(topology::NodeKind::kGpu, "gpu1")));
  const Result<Outcome> outcome = try_simulate(pipe(0), machine, {1, 4, 0});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(outcome.status().message(),
              HasSubstr("rank 0 (gpu0) and rank 1 (gpu1) are not connected"));
}

TEST(SimulateErrors, ALimitOnEventsEndsASimulation) {
  SimulateOptions options;
  options.most_events = 10;
  const Result<Outcome> outcome =
      try_simulate(pipe(0), machines::star(2, kGbs, kLatency), {100, 4, 1}, Cost{}, options);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), Code::kTimeout);
  EXPECT_THAT(outcome.status().message(), HasSubstr("after 10 events"));
}

TEST(SimulateErrors, CostsThatMakeNoSenseAreRefused) {
  Cost cost;
  cost.gpu.copy_gbs = 0;
  const Result<Outcome> outcome =
      try_simulate(pipe(0), machines::star(2, kGbs, kLatency), {1, 4, 0}, cost);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().message(), "cost: gpu.copy_gbs is 0, not 1e-06 to 1000000 GB/s");
}

}  // namespace
}  // namespace tessera::simulator
