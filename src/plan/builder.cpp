#include "plan/builder.h"

#include <utility>

namespace tessera {
namespace {

RankProgram& program(Plan& plan, int rank) { return plan.programs[static_cast<size_t>(rank)]; }

}  // namespace

Step& StepRef::step() {
  Lane& lane = program(*plan_, rank_).lanes[static_cast<size_t>(lane_)];
  return lane.steps[static_cast<size_t>(step_)];
}

StepRef& StepRef::wait(int counter, uint32_t increment, uint32_t lag) {
  step().waits.push_back({counter, increment, lag});
  return *this;
}

StepRef& StepRef::signal(int rank, int counter, uint32_t increment) {
  step().signals.push_back({rank, counter, increment});
  return *this;
}

StepRef& StepRef::span(int chunks) {
  step().chunks = chunks;
  return *this;
}

StepRef LaneRef::copy(int chunk, Ref dst, Ref src) {
  return copy(chunk, std::vector<Ref>{dst}, src);
}

StepRef LaneRef::copy(int chunk, std::vector<Ref> dsts, Ref src) {
  Step step;
  step.op = Op::kCopy;
  step.chunk = chunk;
  step.dsts = std::move(dsts);
  step.srcs = {src};
  return add(std::move(step));
}

StepRef LaneRef::reduce(int chunk, std::vector<Ref> dsts, std::vector<Ref> srcs) {
  Step step;
  step.op = Op::kReduce;
  step.chunk = chunk;
  step.dsts = std::move(dsts);
  step.srcs = std::move(srcs);
  return add(std::move(step));
}

StepRef LaneRef::accumulate(int chunk, Ref dst, Ref src, int tally) {
  Step step;
  step.op = Op::kAccumulate;
  step.chunk = chunk;
  step.dsts = {dst};
  step.srcs = {src};
  return add(std::move(step)).signal(rank_, tally);
}

StepRef LaneRef::sync() { return add(Step{}); }

StepRef LaneRef::add(Step step) {
  std::vector<Step>& steps = program(*plan_, rank_).lanes[static_cast<size_t>(lane_)].steps;
  steps.push_back(std::move(step));
  return StepRef(*plan_, rank_, lane_, static_cast<int>(steps.size()) - 1);
}

PlanBuilder::PlanBuilder(std::string name, Collective collective, int ranks, int root,
                         int chunks_per_block, int scratch_depth) {
  plan_.name = std::move(name);
  plan_.collective = collective;
  plan_.ranks = ranks;
  plan_.root = root;
  plan_.chunks_per_block = chunks_per_block;
  plan_.scratch_depth = scratch_depth;
  plan_.programs.resize(static_cast<size_t>(ranks));
}

LaneRef PlanBuilder::lane(int rank, int lane) {
  std::vector<Lane>& lanes = program(plan_, rank).lanes;
  const auto needed = static_cast<size_t>(lane) + 1;
  if (lanes.size() < needed) lanes.resize(needed);
  return LaneRef(plan_, rank, lane);
}

int PlanBuilder::counter(int rank) {
  std::vector<CounterInfo>& counters = program(plan_, rank).counters;
  counters.push_back({});
  return static_cast<int>(counters.size()) - 1;
}

int PlanBuilder::external_counter(int rank, uint32_t arrivals) {
  std::vector<CounterInfo>& counters = program(plan_, rank).counters;
  counters.push_back({CounterKind::kExternal, arrivals});
  return static_cast<int>(counters.size()) - 1;
}

int PlanBuilder::scratch(int rank, int chunks) {
  int& slots = program(plan_, rank).scratch_chunks;
  const int first = slots;
  slots += chunks;
  return first;
}

Plan PlanBuilder::build() && { return std::move(plan_); }

}  // namespace tessera
