// Walks one pass of a plan in an order that its waits allow, and calls back for every step.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace tessera::test {

// Calls visit(rank, lane, step) once for every step, each after the steps that its waits of this
// pass need. False if the plan gets stuck.
template <class Visit>
bool walk(const Plan& plan, Visit visit) {
  std::vector<std::vector<uint64_t>> values;
  std::vector<std::vector<size_t>> next;
  for (const RankProgram& program : plan.programs) {
    values.emplace_back(program.counters.size(), 0);
    next.emplace_back(program.lanes.size(), 0);
  }
  const auto ready = [&](int rank, const Step& step) {
    for (const Wait& wait : step.waits) {
      if (wait.lag == 0 && values[rank][wait.counter] < wait.increment) return false;
    }
    return true;
  };
  bool moved = true, finished = false;
  while (moved && !finished) {
    moved = false;
    finished = true;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const std::vector<Lane>& lanes = plan.programs[rank].lanes;
      for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const std::vector<Step>& steps = lanes[lane].steps;
        size_t& at = next[rank][lane];
        for (; at < steps.size() && ready(rank, steps[at]); ++at) {
          visit(rank, static_cast<int>(lane), steps[at]);
          for (const Signal& signal : steps[at].signals) {
            values[signal.rank][signal.counter] += signal.increment;
          }
          moved = true;
        }
        finished = finished && at == steps.size();
      }
    }
  }
  return finished;
}

}  // namespace tessera::test
