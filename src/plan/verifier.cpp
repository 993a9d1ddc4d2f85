#include "plan/verifier.h"

#include <algorithm>
#include <utility>

#include "plan/limits.h"
#include "plan/shape.h"
#include "plan/verifier_internal.h"

namespace tessera {
namespace {

using verifier::Memory;
using verifier::Order;
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
Result<Values> check_placement(const Plan& plan, const PlanIndex& index, const Order& order,
                               const Memory& memory, const Values* separate) {
  if (Status status = check_races(plan, index, order, memory); !status.ok()) return status;
  return check_values(plan, index, order, memory, separate);
}

Result<Values> check_all(const Plan& plan) {
  if (Status status = verifier::check_form(plan); !status.ok()) return status;
  const PlanIndex index(plan);
  if (Status status = check_waits_reachable(index); !status.ok()) return status;
  const uint32_t passes = verifier::passes_needed(plan);
  const Memory memory(plan, passes, false);
  if (Status status = check_size(plan, index, memory, passes); !status.ok()) return status;
  Result<Order> order = run_order(plan, index);
  if (!order.ok()) return order.status();
  Result<Values> values = check_placement(plan, index, order.value(), memory, nullptr);
  if (!values.ok()) return values;
  if (Status status = check_borders(index, order.value()); !status.ok()) return status;
  if (plan.collective == Collective::kBarrier) {
    Status status = check_barrier(index, order.value(), plan.ranks);
    if (!status.ok()) return status;
  }
  if (any_in_place(plan)) {
    const Memory in_place(plan, passes, true);
    const Result<Values> again =
        check_placement(plan, index, order.value(), in_place, &values.value());
    if (!again.ok()) {
      return Status(again.status().code(), "with in-place buffers: " + again.status().message());
    }
  }
  if (Status status = check_all_awaited(plan, index); !status.ok()) return status;
  return values;
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
