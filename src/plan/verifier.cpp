#include "plan/verifier.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "plan/limits.h"
#include "plan/shape.h"
#include "plan/verifier_internal.h"

namespace tessera {
namespace {

using verifier::Memory;
using verifier::PlanIndex;
using verifier::Values;

Status check_size(const Plan& plan, const PlanIndex& index, const Memory& memory, size_t passes) {
  size_t accesses = 0;
  for (uint32_t lane = 0; lane < index.lanes(); ++lane) {
    for (const Step& step : index.steps(lane)) {
      if (step.op == Op::kSync) continue;
      accesses += (step.dsts.size() + step.srcs.size()) * static_cast<size_t>(step.chunks);
      if (accesses * passes > kMaxAccesses) break;
    }
  }
  if (accesses * passes <= kMaxAccesses && memory.locations() <= kMaxLocations) return {};
  return Status::error(Code::kPlanInvalid,
                       "plan \"{}\" is too large to verify: it moves or names too many chunks",
                       plan.name);
}

bool any_in_place(const Plan& plan) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (has_in_place(plan.collective, plan.ranks, plan.root, rank)) return true;
  }
  return false;
}

// Everything that depends on where buffers lie.
struct Placement {
  Placement(const Plan& plan, const PlanIndex& index, uint32_t passes, const Placement* separate)
      : memory(plan, passes, separate != nullptr),
        races(race_check(plan, index, memory)),
        values(value_check(plan, index, memory, separate ? separate->values.get() : nullptr)) {}
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  Status end() {
    if (Status status = races->end(); !status.ok()) return status;
    return values->end();
  }

  const Memory memory;
  std::unique_ptr<verifier::Watcher> races;
  std::unique_ptr<verifier::ValueWatcher> values;
};

Result<Values> check_all(const Plan& plan) {
  if (Status status = verifier::check_form(plan); !status.ok()) return status;
  const PlanIndex index(plan);
  if (Status status = check_tallies(index); !status.ok()) return status;
  if (Status status = check_waits_reachable(index); !status.ok()) return status;
  const uint32_t passes = verifier::passes_needed(plan);
  if (Status status = check_size(plan, index, Memory(plan, passes, false), passes); !status.ok())
    return status;
  Placement separate(plan, index, passes, nullptr);
  std::optional<Placement> in_place;
  const auto borders = verifier::border_check(plan, index);
  const auto barrier = plan.collective == Collective::kBarrier
                           ? verifier::barrier_check(plan, index)
                           : std::unique_ptr<verifier::Watcher>();
  std::vector<verifier::Watcher*> watchers = {separate.races.get(), separate.values.get(),
                                              borders.get()};
  if (barrier) watchers.push_back(barrier.get());
  if (any_in_place(plan)) {
    in_place.emplace(plan, index, passes, &separate);
    watchers.insert(watchers.end(), {in_place->races.get(), in_place->values.get()});
  }
  if (Status status = run_order(plan, index, watchers); !status.ok()) return status;
  if (Status status = separate.end(); !status.ok()) return status;
  if (Status status = borders->end(); !status.ok()) return status;
  if (barrier) {
    if (Status status = barrier->end(); !status.ok()) return status;
  }
  if (in_place) {
    if (const Status again = in_place->end(); !again.ok())
      return Status(again.code(), "with in-place buffers: " + again.message());
  }
  if (Status status = check_all_awaited(plan, index); !status.ok()) return status;
  return separate.values->values();
}

void set_completes(Plan& plan, const Values& values) {
  size_t lane_number = 0;
  for (RankProgram& program : plan.programs) {
    for (Lane& lane : program.lanes) {
      const std::vector<uint8_t>& completes = values.completes[lane_number++];
      for (size_t s = 0; s < lane.steps.size(); ++s) lane.steps[s].completes = completes[s] == 1;
    }
  }
}

}  // namespace

Result<VerifiedPlan> verify(Plan plan) {
  const Result<Values> values = check_all(plan);
  if (!values.ok()) return values.status();
  set_completes(plan, values.value());
  return VerifiedPlan(std::move(plan));
}

}  // namespace tessera
