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

  auto linked = std::make_unique<LinkedPlan>();
  LinkOptions options;
  options.slot_bytes = choice.slot_bytes;
  options.entered = choice.algorithm->reach == Reach::kDirect;
  linked->program = link(*verified.value(), core_.rank, options);
  const size_t bytes =
      (region_bytes(linked->program) + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  if (bytes > core_.view.arena_bytes() - used_) {
    return Status::error(Code::kSystem,
                         "{}: plan {} of {} needs {} bytes of scratch, {} are left; use fewer "
                         "different roots and sizes per communicator",
                         core_.health->who(), choice.algorithm->name,
                         to_string(choice.algorithm->collective), bytes,
                         core_.view.arena_bytes() - used_);
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
  entries_.push_back({choice.algorithm, root, choice.slot_bytes, choice.depth, std::move(linked)});
  return entries_.back().plan.get();
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
