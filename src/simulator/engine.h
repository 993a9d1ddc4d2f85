// The event loop of a simulation. For simulate.cpp.
//
// A step's way through the events (in brackets: only where it costs time or has to be shared):
//
//   proceed --> [kReady: core] --> begin --> [kFlows] --> kFlowEnd, [kMoved] --> finish --> proceed
//                                                                                  `--> kArrival
//
// A lane blocks on one unmet wait at a time; the arrival that meets the last one starts the step
// and is what the critical path goes back to.
// Thread safety: none.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "simulator/model.h"
#include "simulator/queue.h"
#include "simulator/simulate.h"

namespace tessera::simulator {

class Engine {
 public:
  Engine(const Source& source, const Routes& routes, const Message& message, const Cost& cost,
         const SimulateOptions& options);

  Status run();
  Outcome take_outcome();

 private:
  struct Lane {
    uint32_t rank = 0, index = 0;  // index: of the rank's lanes
    uint32_t first_step = 0, steps = 0;
    uint32_t pass = 0, step = 0;
    uint32_t wait = 0;     // the next one to be met
    uint32_t pending = 0;  // flows, and local work, of the step under way
    uint32_t record = kNoRecord;
    Work work;  // of the step under way
    double free_at = 0;
    bool blocked = false, done = false;
  };
  struct Core {
    bool busy = false;
    uint32_t rank = ~0u;        // that it last worked for
    std::deque<Event> waiting;  // lanes, in the order they became ready
  };
  // A compute kernel's progress on one rank.
  struct Tiles {
    uint32_t pass = 0, external = 0, arrivals = 0;
  };

  void place_lanes();
  void start_lanes();
  void start_tiles(uint32_t rank);
  void handle(const Event& event);
  void proceed(uint32_t lane, uint32_t cause);
  bool waits_met(Lane& lane);
  void ready(uint32_t lane, uint32_t before);
  void begin(uint32_t lane, double at, uint32_t before);
  void start_flows(uint32_t lane);
  void moved(uint32_t lane);
  void finish(uint32_t lane);
  void raise_signals(Lane& lane, uint32_t index, const StepCode& step);
  void raise(uint32_t rank, uint32_t counter, uint64_t by, uint32_t cause);
  void arrive(const Event& event);
  void tile(uint32_t rank);
  void release(uint32_t core);
  void schedule_due();
  Status deadlock() const;
  std::string waiting_step(const Lane& lane) const;
  uint64_t& counter(uint32_t rank, uint32_t id) {
    return counters_[first_counter_[rank] + id * counter_stride_];
  }

  const StepCode& step_of(const Lane& lane) const {
    return source_.code().steps[lane.first_step + lane.step];
  }

  const Source& source_;
  const SimulateOptions options_;
  std::vector<LinkSample> samples_;
  Shares shares_;
  Model model_;
  Queue queue_;
  double now_ = 0;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> first_lane_;  // by rank, and one more
  // Of all ranks; those of one rank in a row or, where all ranks are alike, the same counter of all
  // ranks: they are in use at about the same time.
  std::vector<uint64_t> counters_;
  std::vector<size_t> first_counter_;  // by rank
  size_t counter_stride_ = 1;
  std::vector<Core> cores_;
  std::vector<Tiles> tiles_;
  std::vector<StepRecord> records_;
  bool recording_ = false;
  std::vector<double> rank_us_;
  std::vector<uint64_t> link_bytes_;
  uint64_t events_ = 0, steps_ = 0, unfinished_ = 0, next_report_ = 0;
  double last_end_ = -1;
  uint32_t last_record_ = kNoRecord;
};

}  // namespace tessera::simulator
