// What an engine has to say at the end: its outcome, or why there is none.
#include <algorithm>
#include <utility>

#include "simulator/critical_path.h"
#include "simulator/engine.h"

namespace tessera::simulator {

std::string Engine::waiting_step(const Lane& lane) const {
  const auto rank = static_cast<int>(lane.rank);
  const WaitCode& wait = source_.code().waits[step_of(lane).first_wait + lane.wait];
  const uint64_t target = (lane.pass - wait.lag) * wait.per_pass + wait.increment;
  return fmt::format(
      "rank {} lane {} step {} ({}) of pass {} waits for counter {}: it has {} of {}", rank,
      lane.index, lane.step, source_.describe(rank, static_cast<int>(lane.index), lane.step),
      lane.pass, wait.counter,
      counters_[first_counter_[lane.rank] + wait.counter * counter_stride_], target);
}

Status Engine::deadlock() const {
  constexpr int kShown = 4;
  std::string text = fmt::format("\"{}\" stops at {:.3f} us: {} lanes wait for ever",
                                 source_.name(), now_, unfinished_);
  int shown = 0;
  for (const Lane& lane : lanes_) {
    if (lane.blocked && shown++ < kShown) text += "; " + waiting_step(lane);
  }
  if (shown > kShown) text += fmt::format("; and {} more", shown - kShown);
  return Status(Code::kPlanDeadlock, text);
}

Outcome Engine::take_outcome() {
  Outcome outcome;
  outcome.rank_us = std::move(rank_us_);
  for (const double us : outcome.rank_us) outcome.total_us = std::max(outcome.total_us, us);
  outcome.link_bytes = std::move(link_bytes_);
  const topology::Graph& graph = model_.graph();
  for (size_t link = 0; link < outcome.link_bytes.size(); ++link) {
    if (outcome.link_bytes[link] == 0 || outcome.total_us == 0) continue;
    const double us =
        static_cast<double>(outcome.link_bytes[link]) / (graph.links[link].bandwidth * 1000);
    if (us / outcome.total_us <= outcome.busiest_share) continue;
    outcome.busiest_link = static_cast<int>(link);
    outcome.busiest_share = us / outcome.total_us;
  }
  outcome.steps = steps_;
  outcome.events = events_;
  outcome.passes = model_.passes();
  Timeline timeline;
  for (const Lane& lane : lanes_) {
    timeline.lanes.push_back({static_cast<int>(lane.rank), static_cast<int>(lane.index)});
  }
  timeline.steps = std::move(records_);
  timeline.links = std::move(samples_);
  if (options_.critical_path)
    outcome.critical_path = trace_back(model_, timeline, last_record_, outcome.total_us);
  if (options_.trace) outcome.timeline = std::move(timeline);
  return outcome;
}

}  // namespace tessera::simulator
