// Borders: a rank's user buffers are touched by peers only after it began the pass and before it
// ends it.
//
// A pass of a rank begins with its first step and ends when all its lanes have finished their last
// steps of the pass. So an access must come after some step of the owner in that pass, and must be
// before what the owner's last steps waited for.
#include <algorithm>
#include <unordered_map>

#include "plan/verifier_internal.h"

namespace tessera::verifier {
namespace {

struct Visit {  // the last access of a lane to a rank's user buffers in a pass
  uint32_t event = 0;
  Ref ref;
};

class BorderCheck {
 public:
  BorderCheck(const PlanIndex& index, const Order& order) : index_(index), order_(order) {}

  Status run() {
    for (uint32_t e = 0; e < order_.events.size(); ++e) {
      const Event& event = order_.events[e];
      const Step& step = index_.steps(event.lane)[event.step];
      if (step.op == Op::kSync) continue;
      for (const std::vector<Ref>* refs : {&step.srcs, &step.dsts}) {
        for (const Ref& ref : *refs) {
          if (Status status = visit(e, ref); !status.ok()) return status;
        }
      }
    }
    return ends();
  }

 private:
  // Whether some step of `rank` in the pass is before the event.
  bool entered(int rank, const Event& event) const {
    for (uint32_t lane = index_.first_lane(rank); lane < index_.lanes_end(rank); ++lane) {
      const auto steps = static_cast<uint32_t>(index_.steps(lane).size());
      if (steps != 0 && order_.before(lane, event.pass * steps + 1, event)) return true;
    }
    return false;
  }

  Status visit(uint32_t e, const Ref& ref) {
    const Event& event = order_.events[e];
    const int rank = index_.id(event.lane).rank;
    if (ref.rank == rank || ref.buffer == Buffer::kScratch) return {};
    if (!entered(ref.rank, event)) {
      return Status::error(Code::kPlanRace, "{} touches {} before rank {} has entered the pass",
                           index_.describe(event.lane, event.step), describe(ref, 0, rank),
                           ref.rank);
    }
    const uint64_t owner = static_cast<uint64_t>(ref.rank) * order_.passes + event.pass;
    last_visit_[owner * order_.lanes + event.lane] = {e, ref};
    return {};
  }

  // The last event of every lane in a pass.
  std::vector<uint32_t> last_events() const {
    std::vector<uint32_t> last(static_cast<size_t>(order_.passes) * order_.lanes, UINT32_MAX);
    for (uint32_t e = 0; e < order_.events.size(); ++e) {
      const Event& event = order_.events[e];
      last[static_cast<size_t>(event.pass) * order_.lanes + event.lane] = e;
    }
    return last;
  }

  Status ends() const {
    const std::vector<uint32_t> last = last_events();
    const Visit* worst = nullptr;  // the earliest, so that the text does not depend on hashing
    for (const auto& [key, visit] : last_visit_) {
      if (worst != nullptr && worst->event < visit.event) continue;
      if (!leaves_after(visit, last)) worst = &visit;
    }
    if (worst == nullptr) return {};
    const Event& event = order_.events[worst->event];
    return Status::error(Code::kPlanRace,
                         "{} touches {}, but rank {} may end the pass without waiting for it",
                         index_.describe(event.lane, event.step),
                         describe(worst->ref, 0, index_.id(event.lane).rank), worst->ref.rank);
  }

  bool leaves_after(const Visit& visit, const std::vector<uint32_t>& last) const {
    const Event& event = order_.events[visit.event];
    const uint32_t tick = tick_of(index_, event);
    for (uint32_t lane = index_.first_lane(visit.ref.rank); lane < index_.lanes_end(visit.ref.rank);
         ++lane) {
      const uint32_t e = last[static_cast<size_t>(event.pass) * order_.lanes + lane];
      if (e != UINT32_MAX && order_.before(event.lane, tick, order_.events[e])) return true;
    }
    return false;
  }

  const PlanIndex& index_;
  const Order& order_;
  std::unordered_map<uint64_t, Visit> last_visit_;
};

}  // namespace

Status check_borders(const PlanIndex& index, const Order& order) {
  return BorderCheck(index, order).run();
}

// No rank leaves a barrier before every rank has entered it.
Status check_barrier(const PlanIndex& index, const Order& order, int ranks) {
  if (ranks == 1) return {};
  std::vector<uint8_t> seen(static_cast<size_t>(ranks) * static_cast<size_t>(ranks), 0);
  const auto cell = [&](int from, int to) -> uint8_t& {
    return seen[static_cast<size_t>(from) * static_cast<size_t>(ranks) + static_cast<size_t>(to)];
  };
  for (const Event& event : order.events) {
    if (event.pass != 0) continue;
    const int to = index.id(event.lane).rank;
    for (uint32_t lane = 0; lane < order.lanes; ++lane) {
      if (!index.steps(lane).empty() && order.before(lane, 1, event))
        cell(index.id(lane).rank, to) = 1;
    }
  }
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to || cell(from, to) != 0) continue;
      return Status::error(Code::kPlanCoverage,
                           "rank {} may leave the barrier before rank {} has entered it", to, from);
    }
  }
  return {};
}

}  // namespace tessera::verifier
