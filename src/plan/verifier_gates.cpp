// Gates, by what the verifier's run knows to be before each event (plan/gates.h).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/gates.h"
#include "plan/shape.h"
#include "plan/verifier_internal.h"

namespace tessera {
namespace {

using verifier::describe;
using verifier::Event;
using verifier::Memory;
using verifier::PlanIndex;

class GateCheck : public verifier::Watcher {
 public:
  GateCheck(const Plan& plan, const PlanIndex& index, int gated)
      : plan_(plan),
        index_(index),
        gated_(gated),
        memory_(plan, verifier::passes_needed(plan), false) {}

  Status check_counters() const {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (Status s = counters(rank); !s.ok()) return s;
    }
    return {};
  }

 private:
  struct Moment {
    uint32_t lane = 0, tick = 0;
  };
  using Moments = std::unordered_map<size_t, std::vector<Moment>>;  // by location

  int outputs(int rank) const {
    return output_blocks(plan_.collective, plan_.ranks, plan_.root, rank) * plan_.chunks_per_block;
  }

  Status counters(int rank) const {
    const std::vector<CounterInfo>& have = plan_.programs[static_cast<size_t>(rank)].counters;
    const int needed = gated_ + outputs(rank);
    if (static_cast<int>(have.size()) < needed) {
      return Status::error(Code::kPlanCounter,
                           "rank {} has {} counters; {} are needed: for {} chunks of tiles, then "
                           "for {} chunks of the output",
                           rank, have.size(), needed, gated_, outputs(rank));
    }
    for (int c = 0; c < static_cast<int>(have.size()); ++c) {
      const bool external = have[static_cast<size_t>(c)].kind == CounterKind::kExternal;
      if (external == (c < gated_)) continue;
      return Status::error(
          Code::kPlanCounter,
          "counter {} of rank {} is {}; the first {} and no others are external: they count tiles",
          c, rank, external ? "external" : "a step counter", gated_);
    }
    for (int chunk = 0; chunk < outputs(rank); ++chunk) {
      const verifier::CounterFacts& facts = index_.facts(index_.counter(rank, gated_ + chunk));
      if (facts.per_pass == 1 && waited_at_once(rank, gated_ + chunk)) continue;
      return Status::error(Code::kPlanCounter,
                           "counter {} of rank {} tells that output chunk {} is there: it is to be "
                           "raised once a pass, by 1, and waited for without lag",
                           gated_ + chunk, rank, chunk);
    }
    return {};
  }

  bool waited_at_once(int rank, int counter) const {
    for (uint32_t lane = index_.first_lane(rank); lane < index_.lanes_end(rank); ++lane) {
      for (const Step& step : index_.steps(lane)) {
        for (const Wait& wait : step.waits)
          if (wait.counter == counter && wait.lag == 0) return true;
      }
    }
    return false;
  }

  Status look(const Event& event) override {
    const Step& step = index_.steps(event.lane)[event.step];
    const int rank = index_.id(event.lane).rank;
    for (const Wait& wait : step.waits) {
      if (wait.counter >= gated_ || wait.lag != 0) continue;
      const uint32_t arrivals = plan_.programs[static_cast<size_t>(rank)]
                                    .counters[static_cast<size_t>(wait.counter)]
                                    .arrivals;
      if (wait.increment == arrivals) note(ready_, event, {rank, Buffer::kInput, wait.counter}, 0);
    }
    for (const Ref& src : step.srcs) {
      if (Status s = read(event, step, src); !s.ok()) return s;
    }
    for (const Ref& dst : step.dsts) {
      if (Status s = write(event, step, dst); !s.ok()) return s;
    }
    for (const Signal& signal : step.signals) {
      if (Status s = landed(event, step, signal); !s.ok()) return s;
    }
    return {};
  }

  void note(Moments& moments, const Event& event, const Ref& ref, int offset) {
    moments[memory_.at(ref, offset, event.pass)].push_back({event.lane, tick_of(index_, event)});
  }

  // Events come in an order of execution, so what is before an event was seen.
  bool all_before(const std::vector<Moment>& moments, const Event& event) const {
    return std::all_of(moments.begin(), moments.end(),
                       [&](const Moment& m) { return event.after(m.lane, m.tick); });
  }
  bool any_before(const std::vector<Moment>& moments, const Event& event) const {
    return std::any_of(moments.begin(), moments.end(),
                       [&](const Moment& m) { return event.after(m.lane, m.tick); });
  }

  Status foreign(const Event& event, const Ref& ref) const {
    const int rank = index_.id(event.lane).rank;
    if (ref.buffer == Buffer::kScratch || ref.rank == rank) return {};
    return Status::error(Code::kPlanRace,
                         "{} touches {}: a rank's input and output are for its own steps",
                         index_.describe(event.lane, event.step), describe(ref, 0, rank));
  }

  Status read(const Event& event, const Step& step, const Ref& ref) {
    if (Status s = foreign(event, ref); !s.ok()) return s;
    if (ref.buffer != Buffer::kInput) return {};
    for (int j = 0; j < step.chunks && ref.chunk + j < gated_; ++j) {
      const auto found = ready_.find(memory_.at(ref, j, event.pass));
      if (found != ready_.end() && any_before(found->second, event)) continue;
      return Status::error(
          Code::kPlanRace,
          "{} reads {} without waiting for the tiles over it: all arrivals of counter {}",
          index_.describe(event.lane, event.step), describe(ref, j, ref.rank), ref.chunk + j);
    }
    return {};
  }

  Status write(const Event& event, const Step& step, const Ref& ref) {
    if (Status s = foreign(event, ref); !s.ok()) return s;
    if (ref.buffer != Buffer::kOutput) return {};
    for (int j = 0; j < step.chunks; ++j) {
      if (told_.count(memory_.at(ref, j, event.pass)) != 0) return late(event, ref, j);
      note(written_, event, ref, j);
    }
    return {};
  }

  Status landed(const Event& event, const Step& step, const Signal& signal) {
    const int chunk = signal.counter - gated_;
    if (chunk < 0 || chunk >= outputs(signal.rank)) return {};
    const auto fills = [&](const Ref& dst) {
      return dst.rank == signal.rank && dst.buffer == Buffer::kScratch;
    };
    if (std::any_of(step.dsts.begin(), step.dsts.end(), fills)) {
      return Status::error(Code::kPlanCounter,
                           "{} raises counter {} of rank {}, which tells that output chunk {} is "
                           "there, and fills a slot of that rank; let another step raise it",
                           index_.describe(event.lane, event.step), signal.counter, signal.rank,
                           chunk);
    }
    const Ref ref{signal.rank, Buffer::kOutput, chunk};
    const size_t at = memory_.at(ref, 0, event.pass);
    told_.insert(at);
    if (all_before(written_[at], event)) return {};
    return late(event, ref, 0);
  }

  Status late(const Event& event, const Ref& ref, int offset) const {
    const int chunk = ref.chunk + offset;
    return Status::error(Code::kPlanRace,
                         "{}: counter {} of rank {} may tell that output chunk {} is there before "
                         "all that write it have",
                         index_.describe(event.lane, event.step), gated_ + chunk, ref.rank, chunk);
  }

  const Plan& plan_;
  const PlanIndex& index_;
  int gated_;
  Memory memory_;
  Moments ready_;    // waits for all tiles over a chunk of an input
  Moments written_;  // writes of a chunk of an output
  std::unordered_set<size_t> told_;
};

}  // namespace

Status check_gates(const VerifiedPlan& verified, int gated) {
  const Plan& plan = verified.plan();
  const PlanIndex index(plan);
  GateCheck gates(plan, index, gated);
  if (Status s = gates.check_counters(); !s.ok()) return s;
  verifier::Watcher* const watchers[] = {&gates};
  if (Status s = run_order(plan, index, watchers); !s.ok()) return s;
  return gates.end();
}

}  // namespace tessera
