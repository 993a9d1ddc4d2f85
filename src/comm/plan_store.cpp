#include "comm/plan_store.h"

namespace tessera {
namespace {

std::shared_ptr<void> make_shared_plans() { return std::make_shared<SharedPlans>(); }

constexpr size_t kRegionAlignment = 4096;  // so that ranks' pages stay apart

}  // namespace

Result<std::shared_ptr<const VerifiedPlan>> SharedPlans::get(const Algorithm& algorithm,
                                                             const AlgorithmParams& params) {
  const std::lock_guard lock(mutex_);
  auto& plan = plans_[{&algorithm, params.ranks, params.root, params.scratch_depth, params.chunks,
                       params.host_of}];
  if (plan) return plan;
  Result<VerifiedPlan> verified = verify(algorithm.build(params));
  if (!verified.ok()) return verified.status();
  plan = std::make_shared<const VerifiedPlan>(std::move(verified).value());
  return plan;
}

PlanStore::PlanStore(Core& core)
    : core_(core),
      shared_(std::static_pointer_cast<SharedPlans>(core.segment->shared_state(make_shared_plans))),
      used_(kPairRegionBytes * 2 * static_cast<size_t>(core.ranks)) {}

Result<LinkedPlan*> PlanStore::get(const Choice& choice, int root) {
  for (const Entry& entry : entries_) {
    if (entry.algorithm == choice.algorithm && entry.root == root &&
        entry.slot_bytes == choice.slot_bytes && entry.depth == choice.depth)
      return entry.plan.get();
  }
  AlgorithmParams params;
  params.ranks = core_.ranks;
  params.root = root;
  params.scratch_depth = choice.depth;
  params.host_of = core_.site.host_of;
  Result<std::shared_ptr<const VerifiedPlan>> verified = shared_->get(*choice.algorithm, params);
  if (!verified.ok()) return verified.status();

  LinkOptions options;
  options.slot_bytes = choice.slot_bytes;
  options.entered = choice.algorithm->reach == Reach::kDirect;
  Result<std::unique_ptr<LinkedPlan>> linked =
      place(link(*verified.value(), core_.rank, options), verified.value()->plan().name);
  if (!linked.ok()) return linked.status();
  entries_.push_back(
      {choice.algorithm, root, choice.slot_bytes, choice.depth, std::move(linked).value()});
  return entries_.back().plan.get();
}

// Carves the regions of a program.
Result<std::unique_ptr<LinkedPlan>> PlanStore::place(Program program, std::string_view name) {
  auto linked = std::make_unique<LinkedPlan>();
  linked->program = std::move(program);
  const size_t bytes =
      (region_bytes(linked->program) + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  if (bytes > core_.view.arena_bytes() - used_) {
    return Status::error(Code::kSystem,
                         "{}: plan {} needs {} bytes of scratch, {} are left; use fewer different "
                         "roots and sizes per communicator",
                         core_.health->who(), name, bytes, core_.view.arena_bytes() - used_);
  }
  // Of all members: an eager peer writes before the owner links.
  for (int rank = 0; rank < core_.ranks; ++rank) {
    if (core_.elsewhere(rank)) continue;
    if (Status s = core_.segment->commit(core_.view.arena_offset(rank) + used_, bytes); !s.ok())
      return s;
  }
  for (int rank = 0; rank < core_.ranks; ++rank)
    linked->regions.push_back(core_.view.arena(rank) + used_);
  linked->seen.resize(linked->program.waits.size());
  used_ += bytes;
  return linked;
}

Result<LinkedPlan*> PlanStore::lend(const VerifiedPlan& plan, size_t slot_bytes) {
  LinkOptions options;
  options.slot_bytes = slot_bytes;
  Result<std::unique_ptr<LinkedPlan>> linked =
      place(link(plan, core_.rank, options), plan.plan().name);
  if (!linked.ok()) return linked.status();
  lent_.push_back({{}, std::move(linked).value()});
  lent_.back().plan->serial = lent_.size();
  return lent_.back().plan.get();
}

LinkedPlan* PlanStore::spare(std::string_view name) const {
  for (const Lent& lent : lent_)
    if (lent.spare_name == name) return lent.plan.get();
  return nullptr;
}

void PlanStore::take(LinkedPlan* plan) { lent_[plan->serial - 1].spare_name.clear(); }

void PlanStore::give_back(LinkedPlan* plan, std::string name) {
  lent_[plan->serial - 1].spare_name = std::move(name);
}

Result<const Program*> PlanStore::pair_program(const Choice& choice, int side) {
  for (const PairEntry& entry : pairs_) {
    if (entry.algorithm == choice.algorithm && entry.side == side &&
        entry.slot_bytes == choice.slot_bytes && entry.depth == choice.depth)
      return entry.program.get();
  }
  AlgorithmParams params;
  params.ranks = 2;
  params.scratch_depth = choice.depth;
  Result<std::shared_ptr<const VerifiedPlan>> verified = shared_->get(*choice.algorithm, params);
  if (!verified.ok()) return verified.status();
  LinkOptions options;
  options.slot_bytes = choice.slot_bytes;
  options.entered = choice.algorithm->reach == Reach::kDirect;
  auto program = std::make_unique<Program>(link(*verified.value(), side, options));
  pairs_.push_back({choice.algorithm, side, choice.slot_bytes, choice.depth, std::move(program)});
  return pairs_.back().program.get();
}

}  // namespace tessera
