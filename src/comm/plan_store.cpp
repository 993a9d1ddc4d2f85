#include "comm/plan_store.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tessera {
namespace {

std::shared_ptr<void> make_shared_plans() { return std::make_shared<SharedPlans>(); }

constexpr size_t kRegionAlignment = 4096;  // so that ranks' pages stay apart

}  // namespace

Result<std::shared_ptr<const VerifiedPlan>> SharedPlans::get(const Algorithm& algorithm,
                                                             const AlgorithmParams& params) {
  const std::lock_guard lock(mutex_);
  auto& plan = plans_[{&algorithm, params.ranks, params.root, params.scratch_depth, params.chunks,
                       params.host_of, params.order}];
  if (plan) return plan;
  Result<VerifiedPlan> verified = verify(algorithm.build(params));
  if (!verified.ok()) return verified.status();
  plan = std::make_shared<const VerifiedPlan>(std::move(verified).value());
  return plan;
}

PlanStore::PlanStore(Core& core)
    : core_(core),
      shared_(std::static_pointer_cast<SharedPlans>(core.segment->shared_state(make_shared_plans))),
      scratch_(kPairRegionBytes * 2 * static_cast<size_t>(core.ranks), core.view.arena_bytes()) {}

Result<LinkedPlan*> PlanStore::get(const Choice& choice, int root) {
  for (const Entry& entry : entries_) {
    if (entry.algorithm == choice.algorithm && entry.root == root &&
        entry.slot_bytes == choice.slot_bytes && entry.depth == choice.depth)
      return entry.plan.get();
  }
  AlgorithmParams params = params_at(core_.site, root);
  params.scratch_depth = choice.depth;
  Result<std::shared_ptr<const VerifiedPlan>> verified = shared_->get(*choice.algorithm, params);
  if (!verified.ok()) return verified.status();

  LinkOptions options;
  options.slot_bytes = choice.slot_bytes;
  options.entered = choice.algorithm->reach == Reach::kDirect;
  Program program = link(*verified.value(), core_.rank, options);
  const size_t bytes = bytes_of(program);
  const std::optional<size_t> offset = scratch_.carve(bytes);
  if (!offset) {
    return Status::error(Code::kSystem,
                         "{}: plan {} needs {} bytes of scratch, {} are left; use fewer different "
                         "roots and sizes per communicator",
                         core_.health->who(), verified.value()->plan().name, bytes,
                         scratch_.left());
  }
  Result<std::unique_ptr<LinkedPlan>> linked = place(std::move(program), *offset);
  if (!linked.ok()) return linked.status();
  entries_.push_back(
      {choice.algorithm, root, choice.slot_bytes, choice.depth, std::move(linked).value()});
  return entries_.back().plan.get();
}

size_t PlanStore::bytes_of(const Program& program, size_t extra) {
  return (region_bytes(program) + extra + kRegionAlignment - 1) / kRegionAlignment *
         kRegionAlignment;
}

Result<std::unique_ptr<LinkedPlan>> PlanStore::place(Program program, size_t offset, size_t extra) {
  auto linked = std::make_unique<LinkedPlan>();
  linked->program = std::move(program);
  linked->offset = offset;
  linked->bytes = bytes_of(linked->program, extra);
  linked->extra_offset = region_bytes(linked->program);
  // Of all members: an eager peer writes before the owner links.
  for (int rank = 0; rank < core_.ranks; ++rank) {
    if (core_.elsewhere(rank)) continue;
    if (Status s = core_.segment->commit(core_.view.arena_offset(rank) + offset, linked->bytes);
        !s.ok())
      return s;
  }
  for (int rank = 0; rank < core_.ranks; ++rank)
    linked->regions.push_back(core_.view.arena(rank) + offset);
  linked->seen.resize(linked->program.waits.size());
  return linked;
}

Result<LinkedPlan*> PlanStore::lend(const VerifiedPlan& plan, size_t slot_bytes, size_t extra) {
  LinkOptions options;
  options.slot_bytes = slot_bytes;
  Program program = link(plan, core_.rank, options);
  const std::optional<size_t> offset = scratch_.borrow(bytes_of(program, extra));
  if (!offset) return static_cast<LinkedPlan*>(nullptr);
  Result<std::unique_ptr<LinkedPlan>> linked = place(std::move(program), *offset, extra);
  if (!linked.ok()) return linked.status();
  lent_.push_back({{}, std::move(linked).value()});
  lent_.back().plan->serial = ++last_serial_;
  return lent_.back().plan.get();
}

PlanStore::Lent& PlanStore::lent(uint64_t serial) {
  return *std::lower_bound(
      lent_.begin(), lent_.end(), serial,
      [](const Lent& lent, uint64_t wanted) { return lent.plan->serial < wanted; });
}

LinkedPlan* PlanStore::spare(std::string_view name) const {
  for (const Lent& lent : lent_)
    if (lent.spare_name == name) return lent.plan.get();
  return nullptr;
}

void PlanStore::take(LinkedPlan* plan) { lent(plan->serial).spare_name.clear(); }

void PlanStore::give_back(LinkedPlan* plan, std::string name) {
  lent(plan->serial).spare_name = std::move(name);
}

std::vector<uint64_t> PlanStore::spares(size_t most) const {
  std::vector<uint64_t> serials;
  for (const Lent& lent : lent_)
    if (!lent.spare_name.empty() && serials.size() < most) serials.push_back(lent.plan->serial);
  return serials;
}

// Counters of a plan begin at zero. A rank's own arena is its to clear, and what stands for those
// of ranks elsewhere.
void PlanStore::scrap(uint64_t serial) {
  Lent& old = lent(serial);
  for (int rank = 0; rank < core_.ranks; ++rank) {
    if (rank == core_.rank || core_.elsewhere(rank))
      std::memset(old.plan->regions[static_cast<size_t>(rank)], 0, old.plan->bytes);
  }
  scratch_.release(old.plan->offset, old.plan->bytes);
  lent_.erase(lent_.begin() + (&old - lent_.data()));
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
