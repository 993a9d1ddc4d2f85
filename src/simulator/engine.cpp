#include "simulator/engine.h"

#include <algorithm>
#include <utility>

namespace tessera::simulator {

constexpr uint64_t kMostReserved = uint64_t{1} << 27;  // records
constexpr uint64_t kStepsPerReport = uint64_t{1} << 18;
static_assert(sizeof(Event) == 16 && sizeof(StepRecord) == 32);

Engine::Engine(const Source& source, const Routes& routes, const Message& message, const Cost& cost,
               const SimulateOptions& options)
    : source_(source),
      options_(options),
      shares_(routes.graph(), options.trace ? &samples_ : nullptr),
      model_(source, routes, message, cost, shares_),
      recording_(options.trace || options.critical_path) {
  place_lanes();
  const uint64_t steps = source.steps_per_pass() * model_.passes();
  if (recording_) records_.reserve(std::min(steps, kMostReserved));
  cores_.resize(static_cast<size_t>(model_.cores()));
  tiles_.resize(static_cast<size_t>(source.ranks()));
  rank_us_.resize(static_cast<size_t>(source.ranks()));
  link_bytes_.resize(routes.graph().links.size());
}

void Engine::place_lanes() {
  const PlanCode& code = source_.code();
  size_t counters = 0;
  if (source_.compact()) counter_stride_ = static_cast<size_t>(source_.ranks());
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(source_.ranks()); ++rank) {
    const ProgramCode& program = source_.program(static_cast<int>(rank));
    first_lane_.push_back(static_cast<uint32_t>(lanes_.size()));
    first_counter_.push_back(source_.compact() ? rank : counters);
    counters += program.counters;
    for (uint32_t i = 0; i < program.lanes; ++i) {
      const LaneCode& of = code.lanes[program.first_lane + i];
      Lane lane;
      lane.rank = rank;
      lane.index = i;
      lane.first_step = of.first_step;
      lane.steps = of.steps;
      lane.done = of.steps == 0;
      lane.free_at = model_.cost(rank).launch_us;
      lanes_.push_back(lane);
    }
  }
  first_lane_.push_back(static_cast<uint32_t>(lanes_.size()));
  counters_.resize(counters);
}

Status Engine::run() {
  start_lanes();
  std::vector<Event> batch;
  while (model_.status().ok()) {
    // All that happens at one instant comes before links are shared out anew.
    if (queue_.empty() || queue_.time() > now_) {
      shares_.settle(now_);
      schedule_due();
    }
    if (queue_.empty()) break;
    now_ = queue_.time();
    queue_.pop(batch);
    events_ += batch.size();
    if (events_ > options_.most_events) {
      return Status::error(Code::kTimeout,
                           "the simulation of \"{}\" was given up at {:.3f} us, after {} events",
                           source_.name(), now_, options_.most_events);
    }
    for (const Event& event : batch) handle(event);
    if (steps_ >= next_report_ && options_.progress) {
      options_.progress(steps_);
      next_report_ = steps_ + kStepsPerReport;
    }
  }
  if (!model_.status().ok()) return model_.status();
  return unfinished_ == 0 ? Status() : deadlock();
}

void Engine::start_lanes() {
  for (const Lane& lane : lanes_) unfinished_ += lane.done ? 0 : 1;
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(source_.ranks()); ++rank) start_tiles(rank);
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane].done) proceed(lane, kNoRecord);
  }
}

void Engine::start_tiles(uint32_t rank) {
  const ProgramCode& program = source_.program(static_cast<int>(rank));
  const RankCost& cost = model_.cost(rank);
  if (program.externals == 0) return;
  if (cost.tile_us > 0) {
    queue_.push(cost.launch_us + cost.tile_us,
                {first_lane_[rank], rank, kNoRecord, 0, EventKind::kTile});
    return;
  }
  for (uint32_t i = 0; i < program.externals; ++i) {  // everything is there from the start
    const ExternalCode& external = source_.code().externals[program.first_external + i];
    counter(rank, external.counter) += uint64_t{external.arrivals} * model_.passes();
  }
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kArrival:
      arrive(event);
      break;
    case EventKind::kRelease:
      release(event.item);
      break;
    case EventKind::kReady:
      ready(event.lane, event.record);
      break;
    case EventKind::kFlows:
      start_flows(event.lane);
      break;
    case EventKind::kMoved:
      moved(event.lane);
      break;
    case EventKind::kFlowEnd:
      if (!shares_.finish(now_, event.item, event.version)) break;
      if (const double land_us = lanes_[event.lane].work.request_us; land_us > 0) {
        queue_.push(now_ + land_us, {event.lane, 0, kNoRecord, 0, EventKind::kMoved});
      } else {
        moved(event.lane);
      }
      break;
    case EventKind::kTile:
      tile(event.item);
      break;
  }
}

bool Engine::waits_met(Lane& lane) {
  const StepCode& step = step_of(lane);
  const WaitCode* waits = source_.code().waits.data() + step.first_wait;
  for (; lane.wait < step.waits; ++lane.wait) {
    const WaitCode& wait = waits[lane.wait];
    if (lane.pass < wait.lag) continue;
    const uint64_t target = (lane.pass - wait.lag) * wait.per_pass + wait.increment;
    if (counter(lane.rank, wait.counter) < target) return false;
  }
  return true;
}

// The lane's next step starts if it can: `cause` is what has just happened. The lane may be free
// only a little later, when its signals are out.
void Engine::proceed(uint32_t l, uint32_t cause) {
  Lane& lane = lanes_[l];
  lane.blocked = !waits_met(lane);
  if (lane.blocked) return;
  const bool was_free = now_ > lane.free_at;
  const double at = was_free ? now_ : lane.free_at;
  const uint32_t before = was_free ? cause : lane.record;
  if (model_.core(lane.rank) < 0) {
    begin(l, at, before);
  } else {
    queue_.push(at, {l, 0, before, 0, EventKind::kReady});
  }
}

void Engine::ready(uint32_t l, uint32_t before) {
  const Lane& lane = lanes_[l];
  Core& core = cores_[static_cast<size_t>(model_.core(lane.rank))];
  if (core.busy) {
    core.waiting.push_back({l, 0, before, 0, EventKind::kReady});
    return;
  }
  core.busy = true;
  const bool switches = core.rank != lane.rank && core.rank != ~0u;
  core.rank = lane.rank;
  begin(l, now_ + (switches ? model_.cost(lane.rank).switch_us : 0), before);
}

void Engine::release(uint32_t c) {
  Core& core = cores_[c];
  core.busy = false;
  if (core.waiting.empty()) return;
  const Event next = core.waiting.front();
  core.waiting.pop_front();
  ready(next.lane, next.record);
}

void Engine::begin(uint32_t l, double at, uint32_t before) {
  Lane& lane = lanes_[l];
  const StepCode& step = step_of(lane);
  const RankCost& cost = model_.cost(lane.rank);
  const Work work = lane.work = model_.work(step, lane.rank, lane.pass);
  ++steps_;
  if (recording_) {
    lane.record = static_cast<uint32_t>(records_.size());
    records_.push_back({at, at, before, l, lane.step, lane.pass});
  }
  const double decoded = at + cost.step_us;
  const double worked = decoded + work.local_us;
  if (work.flows == 0) {
    lane.pending = 1;
    queue_.push(worked, {l, 0, kNoRecord, 0, EventKind::kMoved});
    return;
  }
  lane.pending = work.flows;
  if (cost.overlapped && work.local_us > 0) {
    ++lane.pending;
    queue_.push(worked, {l, 0, kNoRecord, 0, EventKind::kMoved});
  }
  const double sends = (cost.overlapped ? decoded : worked) + work.request_us;
  if (Queue::on_grid(sends) > now_) {
    queue_.push(sends, {l, 0, kNoRecord, 0, EventKind::kFlows});
  } else {
    start_flows(l);
  }
}

void Engine::start_flows(uint32_t l) {
  const Lane& lane = lanes_[l];
  const StepCode& step = step_of(lane);
  const Work& work = lane.work;
  model_.for_each_peer(step, lane.rank, [&](uint32_t from, uint32_t to) {
    const RouteCode* way = model_.route(from, to);
    if (way == nullptr || way->links == 0) return;
    const uint64_t bytes = static_cast<uint64_t>(work.bytes);
    for (uint32_t i = 0; i < way->links; ++i)
      link_bytes_[shares_.resource_of(way->path, i)] += bytes;
    shares_.start(now_, way->path, l, model_.limit(*way, work, lane.rank), work.bytes);
  });
  schedule_due();
}

void Engine::schedule_due() {
  for (const Shares::Due& due : shares_.due())
    queue_.push(due.time, {due.lane, due.flow, kNoRecord, due.version, EventKind::kFlowEnd});
  shares_.due().clear();
}

void Engine::moved(uint32_t l) {
  if (--lanes_[l].pending == 0) finish(l);
}

void Engine::finish(uint32_t l) {
  Lane& lane = lanes_[l];
  const StepCode& step = step_of(lane);
  if (recording_) records_[lane.record].end = now_;
  raise_signals(lane, l, step);
  rank_us_[lane.rank] = std::max(rank_us_[lane.rank], lane.free_at);
  if (lane.free_at > last_end_) {
    last_end_ = lane.free_at;
    last_record_ = lane.record;
  }
  if (const int core = model_.core(lane.rank); core >= 0) {
    queue_.push(lane.free_at, {l, static_cast<uint32_t>(core), kNoRecord, 0, EventKind::kRelease});
  }
  lane.wait = 0;
  if (++lane.step == lane.steps) {
    lane.step = 0;
    lane.done = ++lane.pass == model_.passes();
  }
  if (lane.done) {
    --unfinished_;
  } else {
    proceed(l, lane.record);
  }
}

void Engine::raise_signals(Lane& lane, uint32_t l, const StepCode& step) {
  const double each = model_.cost(lane.rank).signal_us;
  lane.free_at = now_;
  for (uint32_t i = 0; i < step.signals; ++i) {
    const uint32_t code = step.first_signal + i;
    const uint32_t owner = source_.turned_rank(source_.code().signals[code].rank, lane.rank);
    lane.free_at += each;
    double latency = 0;
    if (owner != lane.rank) {
      const RouteCode* way = model_.route(lane.rank, owner);
      if (way == nullptr) return;
      latency = way->latency_us;
    }
    queue_.push(lane.free_at + latency, {l, code, lane.record, 0, EventKind::kArrival});
  }
}

void Engine::arrive(const Event& event) {
  const SignalCode& signal = source_.code().signals[event.item];
  const uint32_t owner = source_.turned_rank(signal.rank, lanes_[event.lane].rank);
  if (options_.raised) options_.raised(static_cast<int>(owner), signal.counter, now_);
  raise(owner, signal.counter, signal.increment, event.record);
}

void Engine::raise(uint32_t rank, uint32_t counter, uint64_t by, uint32_t cause) {
  this->counter(rank, counter) += by;
  for (uint32_t l = first_lane_[rank]; l < first_lane_[rank + 1]; ++l) {
    const Lane& lane = lanes_[l];
    if (!lane.blocked) continue;
    if (source_.code().waits[step_of(lane).first_wait + lane.wait].counter == counter)
      proceed(l, cause);
  }
}

void Engine::tile(uint32_t rank) {
  const ProgramCode& program = source_.program(static_cast<int>(rank));
  Tiles& at = tiles_[rank];
  const uint32_t which =
      options_.tile_order ? options_.tile_order(static_cast<int>(rank), at.external) : at.external;
  const ExternalCode& external = source_.code().externals[program.first_external + which];
  const bool arrives = external.arrivals > 0;
  if (++at.arrivals >= external.arrivals) {
    at.arrivals = 0;
    if (++at.external == program.externals) {
      at.external = 0;
      ++at.pass;
    }
  }
  if (at.pass < model_.passes()) {
    const double next = arrives ? model_.cost(rank).tile_us : 0;
    queue_.push(now_ + next, {first_lane_[rank], rank, kNoRecord, 0, EventKind::kTile});
  }
  if (arrives) raise(rank, external.counter, 1, kNoRecord);
}

}  // namespace tessera::simulator
