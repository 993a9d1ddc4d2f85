// What ranks do to each other: links, devices and cores that they share.
#include <gtest/gtest.h>

#include "plan/builder.h"
#include "simulator/simulate.h"
#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

using machines::Machine;

constexpr size_t kCount = 1 << 20;
constexpr double kBytes = 4.0 * kCount;
constexpr double kGbs = 10;
constexpr double kAlone = kBytes / (kGbs * 1e3);  // us

Ref in(int rank) { return {rank, Buffer::kInput, 0}; }
Ref scratch(int rank) { return {rank, Buffer::kScratch, 0}; }

// Each pair (from, to) is one put, at once.
Plan puts(int ranks, const std::vector<std::pair<int, int>>& pairs) {
  PlanBuilder plan("puts", Collective::kAllReduce, ranks);
  int lane = 0;
  for (const auto& [from, to] : pairs) plan.lane(from, lane++).copy(0, scratch(to), in(from));
  return std::move(plan).build();
}

Outcome simulated(const Plan& plan, const Machine& machine, const Cost& cost = run::costs({})) {
  const Result<Source> source = Source::of(plan);
  EXPECT_TRUE(source.ok()) << source.status().message();
  Result<Outcome> outcome = simulate(source.value(), machine.routes(), {kCount, 4, 0}, cost);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

TEST(Contention, TwoFlowsOnOneLinkGetHalfOfItEach) {
  const Machine machine = machines::star(3, kGbs, 0);
  EXPECT_NEAR(simulated(puts(3, {{0, 1}}), machine).total_us, kAlone, 1e-3);
  EXPECT_NEAR(simulated(puts(3, {{0, 1}, {0, 2}}), machine).total_us, 2 * kAlone, 1e-3);
  EXPECT_NEAR(simulated(puts(3, {{0, 2}, {1, 2}}), machine).total_us, 2 * kAlone, 1e-3);
}

TEST(Contention, BothDirectionsOfALinkAreIndependent) {
  const Machine machine = machines::star(2, kGbs, 0);
  EXPECT_NEAR(simulated(puts(2, {{0, 1}, {1, 0}}), machine).total_us, kAlone, 1e-3);
}

TEST(Contention, FlowsOnLinksOfTheirOwnDoNotDisturbEachOther) {
  const Machine machine = machines::star(4, kGbs, 0);
  EXPECT_NEAR(simulated(puts(4, {{0, 1}, {2, 3}}), machine).total_us, kAlone, 1e-3);
}

TEST(Contention, TheFanOutTableBoundsADeviceThatTalksToMany) {
  Machine machine = machines::star(3, kGbs, 0);
  machine.graph.nodes[machine.nodes[0]].fan_out = {kGbs, kGbs / 2};
  EXPECT_NEAR(simulated(puts(3, {{0, 1}}), machine).total_us, kAlone, 1e-3);
  EXPECT_NEAR(simulated(puts(3, {{0, 1}, {0, 2}}), machine).total_us, 4 * kAlone, 1e-3);
  EXPECT_NEAR(simulated(puts(3, {{1, 0}, {2, 0}}), machine).total_us, 4 * kAlone, 1e-3);
}

TEST(Contention, TheBusiestLinkIsNamedWithItsBytes) {
  const Machine machine = machines::star(3, kGbs, 0);
  const Outcome outcome = simulated(puts(3, {{0, 2}, {1, 2}}), machine);
  const int up = machine.graph.out[machine.nodes[2]].front();
  const int down = machine.graph.links[up].reverse;
  EXPECT_EQ(outcome.busiest_link, down);
  EXPECT_NEAR(outcome.busiest_share, 1, 1e-6);
  EXPECT_EQ(outcome.link_bytes[down], 2 * static_cast<uint64_t>(kBytes));
  EXPECT_EQ(outcome.link_bytes[up], 0u);
}

TEST(Contention, ALaneMovesNoMoreThanItsLimit) {
  Cost cost = run::costs({});
  cost.gpu.lane_gbs = kGbs / 4;
  const Machine machine = machines::star(3, kGbs, 0);
  EXPECT_NEAR(simulated(puts(3, {{0, 1}, {2, 1}}), machine, cost).total_us, 4 * kAlone, 1e-3);
}

// Two ranks on the core of rank 1, each with two local copies.
TEST(Contention, RanksOnOneCoreTakeTurnsAndPayForTheChange) {
  Machine machine = machines::star(2, kGbs, 0, topology::NodeKind::kCore);
  PlanBuilder plan("copies", Collective::kAllReduce, 3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int i = 0; i < 2; ++i) plan.lane(rank).copy(0, scratch(rank), in(rank));
  }
  const Plan copies = std::move(plan).build();
  machine.nodes.push_back(machine.nodes[1]);
  Cost cost = run::costs({.copy_gbs = kGbs});
  cost.host.switch_us = 0;
  Outcome outcome = simulated(copies, machine, cost);
  EXPECT_NEAR(outcome.rank_us[0], 2 * kAlone, 1e-3);
  EXPECT_NEAR(outcome.rank_us[1], 3 * kAlone, 1e-3);  // 1 2 1 2
  EXPECT_NEAR(outcome.rank_us[2], 4 * kAlone, 1e-3);
  cost.host.switch_us = 5;
  outcome = simulated(copies, machine, cost);
  EXPECT_NEAR(outcome.rank_us[0], 2 * kAlone, 1e-3);
  EXPECT_NEAR(outcome.rank_us[2], 4 * kAlone + 15, 1e-3);
}

TEST(Contention, RanksOnOneNodeCopyInsteadOfUsingLinks) {
  Machine machine = machines::star(1, kGbs, 0);
  machine.nodes.push_back(machine.nodes[0]);
  const Outcome outcome = simulated(puts(2, {{0, 1}}), machine, run::costs({.copy_gbs = kGbs / 2}));
  EXPECT_NEAR(outcome.total_us, 2 * kAlone, 1e-3);
  EXPECT_EQ(outcome.busiest_link, -1);
}

TEST(Contention, LocalWorkAndWireOverlapOnlyWhereTheRankSaysSo) {
  PlanBuilder plan("both", Collective::kAllReduce, 2);
  plan.lane(0).copy(0, {scratch(1), {0, Buffer::kOutput, 0}}, in(0));
  const Plan both = std::move(plan).build();
  const Machine machine = machines::star(2, kGbs, 0);
  Cost cost = run::costs({.copy_gbs = kGbs / 2});
  EXPECT_NEAR(simulated(both, machine, cost).total_us, 3 * kAlone, 1e-3);
  cost.gpu.overlapped = true;
  EXPECT_NEAR(simulated(both, machine, cost).total_us, 2 * kAlone, 1e-3);
}

}  // namespace
}  // namespace tessera::simulator
