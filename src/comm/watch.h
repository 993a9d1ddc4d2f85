// Watches a standstill of one communicator: looks for its cause, and for the deadline (I6).
//
// Who waits has a pulse that its peers see. If nothing moved until the deadline, ranks without one
// (stopped, out of reach, or busy elsewhere) are named beside the rank that this one waits for,
// which may itself be held up. A process of this host that is stopped is named before all that.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "comm/core.h"

namespace tessera {

class Watch {
 public:
  // A rank that died may have done its part of this call before, and the living may finish it: a
  // death counts after so long a standstill.
  static constexpr std::chrono::milliseconds kGrace{500};
  static constexpr std::chrono::milliseconds kBetweenBeats{50};

  explicit Watch(const Core& core)
      : core_(core),
        deadline_(Deadline::after(core.config.timeout)),
        grace_(Deadline::after(kGrace)),
        half_(Deadline::after(core.config.timeout / 2)),
        next_beat_(Deadline::after(kBetweenBeats)) {}

  // After each sleep. Who calls it is inside the core (Core::enter), where others may be, too.
  void beat();
  // After that. `moved` changes with progress; `diagnose(overdue)` explains a standstill.
  template <class Diagnose>
  Status look(uint64_t moved, const Diagnose& diagnose) {
    if (!core_.health->good()) return core_.health->status();
    if (moved != moved_) {
      moved_ = moved;
      restart_clocks();
      return {};
    }
    if (grace_.passed()) {
      if (Status s = core_.health->look(); !s.ok()) return s;
    }
    const bool overdue = deadline_.passed();
    Status s = diagnose(overdue);
    if (s.ok()) return s;
    if (!overdue) return core_.health->raise(s);
    return core_.health->raise(
        core_.health->explain(Status(s.code(), s.message() + quiet_ranks())));
  }

 private:
  void restart_clocks() {
    deadline_ = Deadline::after(core_.config.timeout);
    grace_ = Deadline::after(kGrace);
    half_ = Deadline::after(core_.config.timeout / 2);
    pulses_.clear();
  }
  // "; rank 2 gave no sign meanwhile ..."; empty if all have a pulse.
  std::string quiet_ranks() const;

  const Core& core_;
  Deadline deadline_;
  Deadline grace_;
  Deadline half_;  // of the deadline
  Deadline next_beat_;
  std::vector<uint64_t> pulses_;  // of all ranks, when half of the time was over
  uint64_t moved_ = ~uint64_t{0};
};

}  // namespace tessera
