// Parts of the verifier. Each check is of a plan that passed the checks before it:
//   check_form -> check_tallies -> check_waits_reachable -> run_order -> what its watchers found ->
//   check_all_awaited.
// Watchers look at one run of the plan side by side, so that what happened before an event need not
// be kept once all have seen it.
// Not for use outside of src/plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace tessera::verifier {

// All lanes of all ranks in one numbering, and the facts about counters that follow from the steps
// alone.
struct LaneId {
  int rank = 0;
  int lane = 0;
};

// One add of a lane to a counter; `sum` counts this lane's adds to it from the start of a pass up
// to this one.
struct Add {
  uint32_t step = 0;
  uint64_t sum = 0;
};

struct Adder {
  uint32_t lane = 0;
  std::vector<Add> adds;  // in step order
};

struct CounterFacts {
  uint64_t per_pass = 0;      // sum of all adds (or arrivals) in one pass
  uint64_t most_awaited = 0;  // greatest increment of any wait
  std::vector<Adder> adders;  // empty for external counters
  std::vector<Wait> waits;    // of all lanes, by increment
};

class PlanIndex {
 public:
  explicit PlanIndex(const Plan& plan);

  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }
  LaneId id(uint32_t lane) const { return lanes_[lane]; }
  uint32_t first_lane(int rank) const { return first_lane_[static_cast<size_t>(rank)]; }
  uint32_t lanes_end(int rank) const { return first_lane_[static_cast<size_t>(rank) + 1]; }
  const std::vector<Step>& steps(uint32_t lane) const { return *steps_[lane]; }
  uint32_t counter(int rank, int counter) const {
    return first_counter_[static_cast<size_t>(rank)] + static_cast<uint32_t>(counter);
  }
  uint32_t counters() const { return first_counter_.back(); }
  const CounterFacts& facts(uint32_t counter) const { return facts_[counter]; }
  size_t total_steps() const { return total_steps_; }

  // "rank 2 lane 0 step 1 (reduce)"
  std::string describe(uint32_t lane, uint32_t step) const;

 private:
  void record(uint32_t lane, uint32_t step);

  std::vector<LaneId> lanes_;
  std::vector<const std::vector<Step>*> steps_;
  std::vector<uint32_t> first_lane_;
  std::vector<uint32_t> first_counter_;
  std::vector<CounterFacts> facts_;
  size_t total_steps_ = 0;
};

// One execution of a step, in a run that holds for all: before() is what every execution has in
// common. A lane's tick counts its finished steps: the event (lane, pass, step) ends at tick
// pass * steps + step + 1.
struct Event {
  uint32_t lane = 0;
  uint32_t step = 0;
  uint32_t pass = 0;
  const uint32_t* past = nullptr;  // by lane: ticks before it; for watchers, while they look

  // Whether `other` had passed `tick` before this event began, in every execution.
  bool after(uint32_t other, uint32_t tick) const { return other == lane || past[other] >= tick; }
};

// A check that looks at all events, one after the other, until it finds a fault.
class Watcher {
 public:
  virtual ~Watcher() = default;
  void see(const Event& event) {
    if (status_.ok()) status_ = look(event);
  }
  // After the run: its first fault.
  Status end() { return status_.ok() ? status_ = finish() : status_; }

 private:
  virtual Status look(const Event& event) = 0;
  virtual Status finish() { return {}; }
  Status status_;
};

inline uint32_t tick_of(const PlanIndex& index, const Event& event) {
  return event.pass * static_cast<uint32_t>(index.steps(event.lane).size()) + event.step + 1;
}

// Where every buffer of every rank lies in one flat numbering of chunk-sized locations. User
// buffers are fresh in every pass; scratch has scratch_depth copies. With `in_place` the ranks that
// have that placement use it.
class Memory {
 public:
  Memory(const Plan& plan, uint32_t passes, bool in_place);

  size_t locations() const { return locations_; }
  size_t at(const Ref& ref, int offset, uint32_t pass) const;

 private:
  struct RankMemory {
    size_t user = 0;       // first location of pass 0
    size_t user_size = 0;  // locations per pass
    size_t input = 0;      // offsets within a pass
    size_t output = 0;
    size_t scratch = 0;
    size_t scratch_size = 0;
  };
  std::vector<RankMemory> ranks_;
  uint32_t depth_;
  size_t locations_ = 0;
};

// Any copy of a chunk onto itself moves nothing (unless a pre-operation changes the data).
bool moves_nothing(const Plan& plan, const Step& step, size_t src, size_t dst);

// "scratch chunk 3", or "scratch chunk 3 of rank 1" when `rank` is another.
std::string describe(const Ref& ref, int offset, int rank);

// How many passes show every reuse of scratch and every lagging wait.
uint32_t passes_needed(const Plan& plan);

Status check_form(const Plan& plan);
Status check_tallies(const PlanIndex& index);
Status check_waits_reachable(const PlanIndex& index);
Status check_all_awaited(const Plan& plan, const PlanIndex& index);
// Shows the watchers all events in the order of one execution. Error: deadlock, shared counters, or
// too large.
Status run_order(const Plan& plan, const PlanIndex& index, std::span<Watcher* const> watchers);

// They keep references to their arguments.
std::unique_ptr<Watcher> race_check(const Plan& plan, const PlanIndex& index, const Memory& memory);
std::unique_ptr<Watcher> border_check(const Plan& plan, const PlanIndex& index);
std::unique_ptr<Watcher> barrier_check(const Plan& plan, const PlanIndex& index);

// What the walk over values found out, per lane and step of a pass / per read operand.
struct Values {
  std::vector<std::vector<uint8_t>> completes;
  std::vector<uint32_t> reads;  // identities of all values read, in the order of events
};

class ValueWatcher : public Watcher {
 public:
  virtual const Values& values() const = 0;
};

// `separate`: the watcher of separate buffers, which sees each event first, when the placement is in
// place; else nullptr.
std::unique_ptr<ValueWatcher> value_check(const Plan& plan, const PlanIndex& index,
                                          const Memory& memory, const ValueWatcher* separate);

}  // namespace tessera::verifier
