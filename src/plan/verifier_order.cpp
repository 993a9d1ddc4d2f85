// Runs all lanes over several passes, symbolically, with happens-before as vector clocks. A clock is
// kept as long as its lane goes on with it or a later wait may join it.
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

// Vector clocks, one row each. A row that nobody holds any more is used again.
class Clocks {
 public:
  explicit Clocks(size_t width) : width_(width) { make(); }

  uint32_t* operator[](uint32_t row) { return rows_[row].get(); }
  const uint32_t* operator[](uint32_t row) const { return rows_[row].get(); }
  bool alone(uint32_t row) const { return holds_[row] == 1; }
  void hold(uint32_t row, size_t times) { holds_[row] += times; }
  void release(uint32_t row) {
    if (--holds_[row] == 0) free_.push_back(row);
  }
  // Held once. False: there is no room.
  bool copy(uint32_t of, uint32_t& row) {
    if (free_.empty() && (rows_.size() + 1) * width_ > kMaxClockEntries) return false;
    if (free_.empty()) {
      row = make();
    } else {
      row = free_.back();
      free_.pop_back();
      holds_[row] = 1;
    }
    std::copy_n(rows_[of].get(), width_, rows_[row].get());
    return true;
  }

 private:
  uint32_t make() {
    rows_.push_back(std::make_unique<uint32_t[]>(width_));
    holds_.push_back(1);
    return static_cast<uint32_t>(rows_.size() - 1);
  }

  size_t width_;
  std::vector<std::unique_ptr<uint32_t[]>> rows_;
  std::vector<size_t> holds_;
  std::vector<uint32_t> free_;
};

class Runner {
 public:
  Runner(const Plan& plan, const PlanIndex& index, std::span<Watcher* const> watchers)
      : index_(index),
        watchers_(watchers),
        passes_(passes_needed(plan)),
        clocks_(index.lanes()),
        clock_(index.lanes()),  // row 0: nothing happened yet
        position_(index.lanes()),
        met_(index.lanes()),
        value_(index.counters()),
        waiting_(index.counters()) {
    clocks_.hold(0, index.lanes());
    size_t first = 0;
    for (uint32_t lane = 0; lane < index.lanes(); ++lane) {
      first_event_.push_back(first);
      first += index.steps(lane).size() * passes_;
    }
  }

  Status run() {
    const size_t events = index_.total_steps() * passes_;
    if (events > kMaxUnrolledSteps) return too_large();
    clock_at_.resize(events);
    for (uint32_t lane = 0; lane < index_.lanes(); ++lane) ready_.push_back(lane);
    while (!ready_.empty()) {
      const uint32_t lane = ready_.front();
      ready_.pop_front();
      if (Status status = advance(lane); !status.ok()) return status;
    }
    for (uint32_t lane = 0; lane < index_.lanes(); ++lane) {
      if (!done(lane)) return deadlock();
    }
    return {};
  }

 private:
  uint32_t steps(uint32_t lane) const { return static_cast<uint32_t>(index_.steps(lane).size()); }
  bool done(uint32_t lane) const { return position_[lane] == steps(lane) * passes_; }

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
      const Event event{lane, s, pass, clocks_[clock_[lane]]};
      for (Watcher* watcher : watchers_) watcher->see(event);
      clock_at_[first_event_[lane] + position_[lane]] = clock_[lane];
      clocks_.hold(clock_[lane], joins_to_come(event));
      ++position_[lane];
      met_[lane] = 0;
      for (const Signal& signal : step.signals) {
        if (Status status = raise(event, signal); !status.ok()) return status;
      }
    }
    return {};
  }

  // The first wait that is not met. Those met before stay so.
  const Wait* unmet(uint32_t lane, const Step& step, uint32_t pass) {
    for (uint32_t& met = met_[lane]; met < step.waits.size(); ++met) {
      const Wait& wait = step.waits[met];
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

  // How often waits will join what led to the event.
  size_t joins_to_come(const Event& event) const {
    size_t joins = 0;
    for (const Signal& signal : index_.steps(event.lane)[event.step].signals) {
      const CounterFacts& facts = index_.facts(index_.counter(signal.rank, signal.counter));
      const auto adder =
          std::lower_bound(facts.adders.begin(), facts.adders.end(), event.lane,
                           [](const Adder& a, uint32_t lane) { return a.lane < lane; });
      const auto add = std::lower_bound(adder->adds.begin(), adder->adds.end(), event.step,
                                        [](const Add& a, uint32_t step) { return a.step < step; });
      auto wait = facts.waits.begin();
      auto end = facts.waits.end();
      if (facts.adders.size() > 1) {
        if (add + 1 != adder->adds.end()) continue;
      } else {
        const auto beyond = [](uint64_t sum, const Wait& w) { return sum < w.increment; };
        end = std::upper_bound(wait, end, add->sum, beyond);
        wait = std::upper_bound(wait, end, add->sum - signal.increment, beyond);
      }
      for (; wait != end; ++wait) joins += event.pass + wait->lag < passes_ ? 1 : 0;
    }
    return joins;
  }

  // Everything up to and including the event (from, pass, step) is before what `lane` does next.
  // False if memory or time runs out.
  bool join(uint32_t lane, uint32_t from, uint32_t pass, uint32_t step) {
    const uint32_t position = pass * steps(from) + step;
    const uint32_t theirs = clock_at_[first_event_[from] + position];
    const bool fits = from == lane || clocks_[clock_[lane]][from] > position ||
                      merge(lane, from, position + 1, theirs);
    clocks_.release(theirs);
    return fits;
  }

  bool merge(uint32_t lane, uint32_t from, uint32_t tick, uint32_t theirs) {
    work_ += index_.lanes();
    if (work_ > kMaxClockWork) return false;
    if (const uint32_t shared = clock_[lane]; !clocks_.alone(shared)) {
      if (!clocks_.copy(shared, clock_[lane])) return false;
      clocks_.release(shared);
    }
    uint32_t* mine = clocks_[clock_[lane]];
    const uint32_t* more = clocks_[theirs];
    for (uint32_t i = 0; i < index_.lanes(); ++i) mine[i] = std::max(mine[i], more[i]);
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
        if (event.after(other.lane, tick)) continue;
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

  Status deadlock() {
    std::string text;
    size_t blocked = 0;
    for (uint32_t lane = 0; lane < index_.lanes(); ++lane) {
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

  std::string blocked_text(uint32_t lane) {
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
  std::span<Watcher* const> watchers_;
  const uint32_t passes_;
  Clocks clocks_;
  size_t work_ = 0;                  // entries of clocks joined
  std::vector<uint32_t> clock_;      // per lane: row
  std::vector<uint32_t> position_;   // steps run, per lane
  std::vector<uint32_t> met_;        // waits of the next step that are met, per lane
  std::vector<size_t> first_event_;  // per lane, into clock_at_
  std::vector<uint32_t> clock_at_;   // per lane, pass and step: row, while it is to be joined
  std::vector<uint64_t> value_;      // per counter
  std::vector<std::vector<uint32_t>> waiting_;
  std::deque<uint32_t> ready_;
};

}  // namespace

Status run_order(const Plan& plan, const PlanIndex& index, std::span<Watcher* const> watchers) {
  return Runner(plan, index, watchers).run();
}

}  // namespace tessera::verifier
