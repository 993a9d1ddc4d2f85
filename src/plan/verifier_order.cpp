// Runs all lanes over several passes, symbolically, and records happens-before as vector clocks.
//
// One order suffices: a wait once satisfied stays so (I3), so every execution runs the same events,
// or stops at the same ones. Edges hold in every execution:
//   - a counter with one adding lane reaches a target exactly at one add of that lane;
//   - a counter with several adding lanes is waited for in whole sums only, and no add of the next
//   pass may come before all
//     adds of this one (checked below), so a satisfied wait has all of them behind it.
#include <algorithm>
#include <deque>

#include "plan/limits.h"
#include "plan/verifier_internal.h"

namespace tessera::verifier {
namespace {

constexpr size_t kMostBlockedShown = 8;

class Runner {
 public:
  Runner(const Plan& plan, const PlanIndex& index) : index_(index) {
    order_.passes = passes_needed(plan);
    order_.lanes = index.lanes();
    value_.resize(index.counters());
    waiting_.resize(index.counters());
    position_.resize(index.lanes());
    clock_.resize(index.lanes());
    size_t first = 0;
    for (uint32_t lane = 0; lane < index.lanes(); ++lane) {
      first_event_.push_back(first);
      first += index.steps(lane).size() * order_.passes;
    }
  }

  Result<Order> run() {
    const size_t events = index_.total_steps() * order_.passes;
    if (events > kMaxUnrolledSteps) return too_large();
    order_.events.reserve(events);
    clock_at_.resize(events);
    order_.clocks.resize(order_.lanes);  // row 0: nothing happened yet
    for (uint32_t lane = 0; lane < order_.lanes; ++lane) ready_.push_back(lane);
    while (!ready_.empty()) {
      const uint32_t lane = ready_.front();
      ready_.pop_front();
      if (Status status = advance(lane); !status.ok()) return status;
    }
    if (order_.events.size() != events) return deadlock();
    return std::move(order_);
  }

 private:
  uint32_t steps(uint32_t lane) const { return static_cast<uint32_t>(index_.steps(lane).size()); }
  bool done(uint32_t lane) const { return position_[lane] == steps(lane) * order_.passes; }

  static Status too_large() {
    return Status(
        Code::kPlanInvalid,
        "the plan is too large to verify: fewer steps, lanes or copies of scratch are needed");
  }

  // Runs the lane until it is done or blocked.
  Status advance(uint32_t lane) {
    while (!done(lane)) {
      const uint32_t pass = position_[lane] / steps(lane);
      const uint32_t s = position_[lane] % steps(lane);
      const Step& step = index_.steps(lane)[s];
      if (const Wait* wait = unmet(lane, step, pass)) {
        waiting_[index_.counter(index_.id(lane).rank, wait->counter)].push_back(lane);
        return {};
      }
      for (const Wait& wait : step.waits) {
        if (wait.lag <= pass && !join_wait(lane, wait, pass - wait.lag)) return too_large();
      }
      const Event event{lane, s, pass, clock_[lane].row};
      clock_[lane].fresh = false;
      clock_at_[first_event_[lane] + position_[lane]] = event.clock;
      order_.events.push_back(event);
      ++position_[lane];
      for (const Signal& signal : step.signals) {
        if (Status status = raise(event, signal); !status.ok()) return status;
      }
    }
    return {};
  }

  const Wait* unmet(uint32_t lane, const Step& step, uint32_t pass) const {
    for (const Wait& wait : step.waits) {
      const uint32_t counter = index_.counter(index_.id(lane).rank, wait.counter);
      const CounterFacts& facts = index_.facts(counter);
      if (wait.lag > pass || facts.adders.empty()) continue;  // arrivals from outside are there
      if (value_[counter] < facts.per_pass * (pass - wait.lag) + wait.increment) return &wait;
    }
    return nullptr;
  }

  bool join_wait(uint32_t lane, const Wait& wait, uint32_t pass) {
    const CounterFacts& facts = index_.facts(index_.counter(index_.id(lane).rank, wait.counter));
    if (facts.adders.size() > 1) {
      for (const Adder& adder : facts.adders) {
        if (!join(lane, adder.lane, pass, adder.adds.back().step)) return false;
      }
      return true;
    }
    if (facts.adders.empty()) return true;
    const Adder& adder = facts.adders.front();
    const auto add =
        std::lower_bound(adder.adds.begin(), adder.adds.end(), wait.increment,
                         [](const Add& a, uint64_t increment) { return a.sum < increment; });
    return join(lane, adder.lane, pass, add->step);
  }

  // Everything up to and including the event (from, pass, step) is before what `lane` does next.
  // False if memory runs out.
  bool join(uint32_t lane, uint32_t from, uint32_t pass, uint32_t step) {
    if (from == lane) return true;
    const uint32_t position = pass * steps(from) + step;
    const uint32_t tick = position + 1;
    if (order_.row(clock_[lane].row, from) >= tick) return true;
    const size_t width = order_.lanes;
    if (!clock_[lane].fresh) {
      const size_t size = order_.clocks.size();
      if (size + width > kMaxClockEntries) return false;
      order_.clocks.resize(size + width);
      std::copy_n(order_.clocks.begin() + static_cast<ptrdiff_t>(clock_[lane].row * width), width,
                  order_.clocks.begin() + static_cast<ptrdiff_t>(size));
      clock_[lane] = {static_cast<uint32_t>(size / width), true};
    }
    uint32_t* mine = &order_.clocks[clock_[lane].row * width];
    const uint32_t* theirs = &order_.clocks[clock_at_[first_event_[from] + position] * width];
    for (size_t i = 0; i < width; ++i) mine[i] = std::max(mine[i], theirs[i]);
    mine[from] = tick;
    return true;
  }

  Status raise(const Event& event, const Signal& signal) {
    const uint32_t counter = index_.counter(signal.rank, signal.counter);
    const CounterFacts& facts = index_.facts(counter);
    if (facts.adders.size() > 1 && event.pass > 0) {
      for (const Adder& other : facts.adders) {
        const uint32_t last = other.adds.back().step;
        const uint32_t tick = (event.pass - 1) * steps(other.lane) + last + 1;
        if (order_.before(other.lane, tick, event)) continue;
        return Status::error(
            Code::kPlanCounter,
            "counter {} of rank {} is raised by several lanes, and the signal of {} in a "
            "later pass could satisfy a wait that still lacks the one of {}",
            signal.counter, signal.rank, index_.describe(event.lane, event.step),
            index_.describe(other.lane, last));
      }
    }
    value_[counter] += signal.increment;
    for (const uint32_t lane : waiting_[counter]) ready_.push_back(lane);
    waiting_[counter].clear();
    return {};
  }

  Status deadlock() const {
    std::string text;
    size_t blocked = 0;
    for (uint32_t lane = 0; lane < order_.lanes; ++lane) {
      if (done(lane)) continue;
      if (++blocked <= kMostBlockedShown) {
        text += (text.empty() ? "" : "; ") + blocked_text(lane);
      }
    }
    if (blocked > kMostBlockedShown) {
      text += fmt::format("; and {} lanes more", blocked - kMostBlockedShown);
    }
    return Status::error(Code::kPlanDeadlock, "no step can run: {}", text);
  }

  std::string blocked_text(uint32_t lane) const {
    const uint32_t pass = position_[lane] / steps(lane);
    const uint32_t s = position_[lane] % steps(lane);
    const Wait* wait = unmet(lane, index_.steps(lane)[s], pass);
    if (wait == nullptr) return index_.describe(lane, s) + " is ready";
    const CounterFacts& facts = index_.facts(index_.counter(index_.id(lane).rank, wait->counter));
    const uint32_t of = pass - wait->lag;
    std::string from;
    for (const Adder& adder : facts.adders) {
      const auto lacking = std::find_if(adder.adds.begin(), adder.adds.end(), [&](const Add& add) {
        return position_[adder.lane] <= of * steps(adder.lane) + add.step;
      });
      if (lacking == adder.adds.end()) continue;
      from = fmt::format(", signalled by {}", index_.describe(adder.lane, lacking->step));
      break;
    }
    return fmt::format("{} of pass {} waits for {} of pass {} on counter {}{}",
                       index_.describe(lane, s), pass, wait->increment, of, wait->counter, from);
  }

  const PlanIndex& index_;
  Order order_;
  struct LaneClock {
    uint32_t row = 0;
    bool fresh = false;  // the row is of the step being prepared, so it may still change
  };
  std::vector<LaneClock> clock_;
  std::vector<uint32_t> position_;   // steps run, per lane
  std::vector<size_t> first_event_;  // per lane, into clock_at_
  std::vector<uint32_t> clock_at_;   // per lane, pass and step
  std::vector<uint64_t> value_;      // per counter
  std::vector<std::vector<uint32_t>> waiting_;
  std::deque<uint32_t> ready_;
};

}  // namespace

Result<Order> run_order(const Plan& plan, const PlanIndex& index) {
  return Runner(plan, index).run();
}

}  // namespace tessera::verifier
