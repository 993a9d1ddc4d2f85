// Borders: a rank's user buffers are touched by peers only after it began the pass and before it
// ends it.
//
// A pass of a rank begins with its first step and ends when all its lanes have finished their last
// steps of the pass. So an access must come after some step of the owner in that pass, and must be
// before what the owner's last steps waited for.
#include <algorithm>

#include "plan/verifier_internal.h"

namespace tessera::verifier {
namespace {

struct Visit {  // the last access of a lane to a rank's user buffers in a pass
  Event event;
  size_t number = 0;  // of the event
  Ref ref;
  bool awaited = false;  // by the last step of one of the owner's lanes
};

class BorderCheck : public Watcher {
 public:
  BorderCheck(const Plan& plan, const PlanIndex& index)
      : index_(index), passes_(passes_needed(plan)), visits_(size_t{passes_} * plan.ranks) {}

 private:
  Status look(const Event& event) override {
    ++number_;
    const std::vector<Step>& steps = index_.steps(event.lane);
    const Step& step = steps[event.step];
    for (const std::vector<Ref>* refs : {&step.srcs, &step.dsts}) {
      for (const Ref& ref : *refs) {
        if (Status status = visit(event, ref); !status.ok()) return status;
      }
    }
    if (event.step + 1 < steps.size()) return {};
    for (Visit& visit : visits_to(index_.id(event.lane).rank, event.pass)) {
      if (event.after(visit.event.lane, tick_of(index_, visit.event))) visit.awaited = true;
    }
    return {};
  }

  std::vector<Visit>& visits_to(int rank, uint32_t pass) {
    return visits_[static_cast<size_t>(rank) * passes_ + pass];
  }

  // Whether some step of `rank` in the pass is before the event.
  bool entered(int rank, const Event& event) const {
    for (uint32_t lane = index_.first_lane(rank); lane < index_.lanes_end(rank); ++lane) {
      const auto steps = static_cast<uint32_t>(index_.steps(lane).size());
      if (steps != 0 && event.after(lane, event.pass * steps + 1)) return true;
    }
    return false;
  }

  Status visit(const Event& event, const Ref& ref) {
    const int rank = index_.id(event.lane).rank;
    if (ref.rank == rank || ref.buffer == Buffer::kScratch) return {};
    if (!entered(ref.rank, event)) {
      return Status::error(Code::kPlanRace, "{} touches {} before rank {} has entered the pass",
                           index_.describe(event.lane, event.step), describe(ref, 0, rank),
                           ref.rank);
    }
    std::vector<Visit>& visits = visits_to(ref.rank, event.pass);
    const auto last = std::find_if(visits.rbegin(), visits.rend(), [&](const Visit& visit) {
      return visit.event.lane == event.lane;
    });
    const Visit now{{event.lane, event.step, event.pass, nullptr}, number_, ref, false};
    if (last == visits.rend()) {
      visits.push_back(now);
    } else {
      *last = now;
    }
    return {};
  }

  Status finish() override {
    const Visit* first = nullptr;
    for (const std::vector<Visit>& visits : visits_) {
      for (const Visit& visit : visits) {
        if (!visit.awaited && (first == nullptr || visit.number < first->number)) first = &visit;
      }
    }
    if (first == nullptr) return {};
    const Event& event = first->event;
    return Status::error(Code::kPlanRace,
                         "{} touches {}, but rank {} may end the pass without waiting for it",
                         index_.describe(event.lane, event.step),
                         describe(first->ref, 0, index_.id(event.lane).rank), first->ref.rank);
  }

  const PlanIndex& index_;
  const uint32_t passes_;
  std::vector<std::vector<Visit>> visits_;  // by rank and pass
  size_t number_ = 0;                       // of events seen
};

// No rank leaves a barrier before every rank has entered it.
class BarrierCheck : public Watcher {
 public:
  BarrierCheck(const Plan& plan, const PlanIndex& index)
      : index_(index), ranks_(plan.ranks), seen_(size_t(plan.ranks) * size_t(plan.ranks)) {}

 private:
  Status look(const Event& event) override {
    if (event.pass != 0) return {};
    const int to = index_.id(event.lane).rank;
    for (uint32_t lane = 0; lane < index_.lanes(); ++lane) {
      if (!index_.steps(lane).empty() && event.after(lane, 1)) cell(index_.id(lane).rank, to) = 1;
    }
    return {};
  }

  Status finish() override {
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) {
        if (from == to || cell(from, to) != 0) continue;
        return Status::error(Code::kPlanCoverage,
                             "rank {} may leave the barrier before rank {} has entered it", to,
                             from);
      }
    }
    return {};
  }

  uint8_t& cell(int from, int to) {
    return seen_[static_cast<size_t>(from) * static_cast<size_t>(ranks_) + static_cast<size_t>(to)];
  }

  const PlanIndex& index_;
  const int ranks_;
  std::vector<uint8_t> seen_;
};

}  // namespace

std::unique_ptr<Watcher> border_check(const Plan& plan, const PlanIndex& index) {
  return std::make_unique<BorderCheck>(plan, index);
}

std::unique_ptr<Watcher> barrier_check(const Plan& plan, const PlanIndex& index) {
  return std::make_unique<BarrierCheck>(plan, index);
}

}  // namespace tessera::verifier
