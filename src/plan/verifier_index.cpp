// The numbering of lanes and counters, the facts about counters, and the balance of signals and
// waits.
#include <algorithm>

#include "plan/limits.h"
#include "plan/verifier_internal.h"

namespace tessera::verifier {

PlanIndex::PlanIndex(const Plan& plan) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const RankProgram& program = plan.programs[static_cast<size_t>(rank)];
    first_lane_.push_back(lanes());
    first_counter_.push_back(static_cast<uint32_t>(facts_.size()));
    for (size_t lane = 0; lane < program.lanes.size(); ++lane) {
      lanes_.push_back({rank, static_cast<int>(lane)});
      steps_.push_back(&program.lanes[lane].steps);
      total_steps_ += program.lanes[lane].steps.size();
    }
    for (const CounterInfo& counter : program.counters) {
      facts_.emplace_back().per_pass = counter.arrivals;
    }
  }
  first_lane_.push_back(lanes());
  first_counter_.push_back(static_cast<uint32_t>(facts_.size()));
  for (uint32_t lane = 0; lane < lanes(); ++lane) {
    for (uint32_t step = 0; step < steps(lane).size(); ++step) record(lane, step);
  }
  for (CounterFacts& facts : facts_) {
    std::sort(facts.waits.begin(), facts.waits.end(),
              [](const Wait& a, const Wait& b) { return a.increment < b.increment; });
  }
}

void PlanIndex::record(uint32_t lane, uint32_t step) {
  for (const Wait& wait : steps(lane)[step].waits) {
    CounterFacts& facts = facts_[counter(id(lane).rank, wait.counter)];
    facts.most_awaited = std::max<uint64_t>(facts.most_awaited, wait.increment);
    facts.waits.push_back(wait);
  }
  for (const Signal& signal : steps(lane)[step].signals) {
    CounterFacts& facts = facts_[counter(signal.rank, signal.counter)];
    facts.per_pass += signal.increment;
    if (facts.adders.empty() || facts.adders.back().lane != lane)
      facts.adders.push_back({lane, {}});
    std::vector<Add>& adds = facts.adders.back().adds;
    const uint64_t sum = adds.empty() ? 0 : adds.back().sum;
    adds.push_back({step, sum + signal.increment});
  }
}

std::string PlanIndex::describe(uint32_t lane, uint32_t step) const {
  const LaneId place = id(lane);
  return fmt::format("rank {} lane {} step {} ({})", place.rank, place.lane, step,
                     step_name(steps(lane)[step], place.rank));
}

uint32_t passes_needed(const Plan& plan) {
  // An edge of happens-before leads from a pass to the same or a later one, and is the same in
  // every pass from the greatest lag on; earlier passes have fewer edges. So passes 0 to max(depth,
  // lag) show every conflict; one more is margin.
  auto reach = static_cast<uint32_t>(plan.scratch_depth);
  for (const RankProgram& program : plan.programs) {
    for (const Lane& lane : program.lanes) {
      for (const Step& step : lane.steps) {
        for (const Wait& wait : step.waits) reach = std::max(reach, wait.lag);
      }
    }
  }
  return reach + 2;
}

// What is waited for must be raised in the pass that the wait is for. With several adders the order
// of their adds is open, so only the sum of all has a meaning.
Status check_waits_reachable(const PlanIndex& index) {
  for (uint32_t lane = 0; lane < index.lanes(); ++lane) {
    const int rank = index.id(lane).rank;
    for (uint32_t s = 0; s < index.steps(lane).size(); ++s) {
      for (const Wait& wait : index.steps(lane)[s].waits) {
        const CounterFacts& facts = index.facts(index.counter(rank, wait.counter));
        if (wait.increment > facts.per_pass) {
          return Status::error(
              Code::kPlanCounter,
              "{} waits for {} of counter {}, but all signals of a pass raise it by {}",
              index.describe(lane, s), wait.increment, wait.counter, facts.per_pass);
        }
        if (facts.adders.size() > 1 && wait.increment != facts.per_pass) {
          return Status::error(
              Code::kPlanCounter,
              "{} waits for {} of counter {}, which {} lanes raise by {} in all; only "
              "their whole sum can be waited for",
              index.describe(lane, s), wait.increment, wait.counter, facts.adders.size(),
              facts.per_pass);
        }
      }
    }
  }
  return {};
}

Status check_all_awaited(const Plan& plan, const PlanIndex& index) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto counters = plan.programs[static_cast<size_t>(rank)].counters.size();
    for (size_t c = 0; c < counters; ++c) {
      const CounterFacts& facts = index.facts(index.counter(rank, static_cast<int>(c)));
      if (facts.most_awaited >= facts.per_pass) continue;
      if (facts.adders.empty()) {
        return Status::error(
            Code::kPlanCounter,
            "external counter {} of rank {} gets {} arrivals in a pass, but its waits "
            "are for {} at most",
            c, rank, facts.per_pass, facts.most_awaited);
      }
      const Adder& last = facts.adders.back();
      return Status::error(
          Code::kPlanCounter,
          "counter {} of rank {} is raised by {} in a pass (last by {}), but its waits are "
          "for {} at most",
          c, rank, facts.per_pass, index.describe(last.lane, last.adds.back().step),
          facts.most_awaited);
    }
  }
  return {};
}

}  // namespace tessera::verifier
