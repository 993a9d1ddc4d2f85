// How a thread with nothing to do sleeps until one of the ranks it runs can go on.
#pragma once

#include <span>

#include "comm/core.h"
#include "comm/idle.h"

namespace tessera {

// Whoever calls is inside all `cores` (Core::enter), entered in this order; outside while it yields
// or sleeps, so that others may drive them: who takes in what came for another thread rings the
// rank. Before that, it does what others of its ranks wait for (comm/driven.h).
bool drive_others(std::span<const Core* const> cores);
void yield_outside(std::span<const Core* const> cores);

// Sleeps on the doorbells of all `cores`, and on their ports where they have any, until one of them
// rings, something comes or becomes due, or Idle::kLongestSleep is over. `look` tries once more and
// returns true if it got on: then there is no sleep.
template <class Look>
void sleep_until_rung(std::span<const Core* const> cores, const Look& look);

// The part with ports: how long at most, and in poll() where a descriptor has to be waited for.
class PortSleep {
 public:
  // Something is due before a sleep would end.
  static bool soon(std::span<const Core* const> cores);

  explicit PortSleep(std::span<const Core* const> cores);
  ~PortSleep();
  void sleep();

 private:
  static constexpr int kMost = kMaxSleepers;
  void wait(std::chrono::nanoseconds most);
  std::span<const Core* const> all_;
  std::span<const Core* const> cores_;  // the first kMost
  bool polls_ = false;
  Sleeper sleepers_[kMost];
};

template <class Look>
void sleep_until_rung(std::span<const Core* const> cores, const Look& look) {
  bool ported = false;
  for (const Core* core : cores) ported = ported || core->ports;
  if (ported) {
    if (PortSleep::soon(cores)) {
      yield_outside(cores);
      look();
      return;
    }
    PortSleep sleep(cores);
    if (!look()) sleep.sleep();
    return;
  }
  Doorbell* doorbells[kMaxSleepers];
  const size_t count = std::min<size_t>(cores.size(), kMaxSleepers);
  for (size_t i = 0; i < count; ++i) doorbells[i] = &cores[i]->area().doorbell;
  const bool all = count == cores.size();
  Idle::sleep({doorbells, count}, all ? Idle::kLongestSleep : std::chrono::milliseconds(1),
              [&] { return look() || drive_others(cores); });
}

}  // namespace tessera
