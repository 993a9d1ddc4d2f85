// The cost walk of a plan: a discrete-event simulation of all its lanes on a described machine.
//
// Semantics are the plan's (plan/plan.h): lanes are sequential; a step starts when its waits are
// met, moves its chunks, then raises its signals; a message longer than a slice takes several
// passes, which overlap as far as waits with a lag allow. Time is what cost.h, the graph's links
// and their sharing (share.h) make of it. External counters rise tile by tile (RankCost::tile_us),
// in the order of their numbers or in SimulateOptions::tile_order.
//
//      Source --- steps ---.                                     .--> Outcome: times, traffic
//      Routes --- links --- simulate(), event by event (queue.h) ---> CriticalPath: why so long
//      Cost   --- costs ---'                                     `--> Timeline: what happened when
//
// Deterministic: equal arguments give equal outcomes, bit for bit; ties go by rank, lane and step.
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "simulator/cost.h"
#include "simulator/routes.h"
#include "simulator/share.h"
#include "simulator/source.h"

namespace tessera::simulator {

struct Message {
  size_t count = 0;  // elements of a block
  size_t element_bytes = 4;
  size_t slice = 0;  // elements of a block moved by one pass; 0: all
};

struct SimulateOptions {
  bool trace = false;            // keep a timeline
  bool critical_path = true;     // needs 32 bytes for each step of each pass
  uint64_t most_events = ~0ull;  // give up beyond
  // If given, called now and then with the number of steps that have begun.
  std::function<void(uint64_t)> progress;
  // Which external counter the compute kernel of a rank completes as its i-th; null: the i-th.
  std::function<uint32_t(int rank, uint32_t i)> tile_order;
  // If given, called for every signal that arrives at a counter.
  std::function<void(int rank, uint32_t counter, double us)> raised;
};

inline constexpr uint32_t kNoRecord = ~0u;

// A step as it ran.
struct StepRecord {
  double begin, end;  // us: waits met and core free; data moved
  uint32_t before;    // record of the step that this one could not start before; or kNoRecord
  uint32_t lane;      // in Timeline::lanes
  uint32_t step, pass;
};

struct LaneOf {
  int rank, lane;
};

struct Timeline {
  std::vector<LaneOf> lanes;
  std::vector<StepRecord> steps;  // in the order they began
  std::vector<LinkSample> links;  // in the order of time
};

// The chain of steps and messages that took the longest, from the start to the last step.
struct CriticalPath {
  uint32_t steps = 0, hops = 0;  // hops: times the chain goes on in another lane
  // Together the total time. overhead: launches, step costs, signals; local: copies and sums; wire:
  // bytes over links that are free; latency; waiting: for links that others use, and for cores.
  double overhead_us = 0, local_us = 0, wire_us = 0, latency_us = 0, waiting_us = 0;
  std::vector<std::pair<int, double>>
      links;         // slowest link of each step, and its us; longest first
  std::string text;  // for people
};

struct Outcome {
  double total_us = 0;
  std::vector<double> rank_us;       // when each rank's last step had ended
  std::vector<uint64_t> link_bytes;  // by link of the graph
  // The link that took the longest for its bytes, and that share of the total time; -1: none.
  int busiest_link = -1;
  double busiest_share = 0;
  uint64_t steps = 0, events = 0;
  uint32_t passes = 1;
  CriticalPath critical_path;
  std::optional<Timeline> timeline;
};

// Errors: kInvalidArgument (plan and machine differ in ranks, ranks are not connected, costs make
// no sense), kPlanDeadlock (names steps that wait for ever), kTimeout (most_events).
Result<Outcome> simulate(const Source& source, const Routes& routes, const Message& message,
                         const Cost& cost, const SimulateOptions& options = {});

}  // namespace tessera::simulator
