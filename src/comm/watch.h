// Watches a standstill of one communicator: looks for its cause, and for the deadline (I6).
#pragma once

#include "base/deadline.h"
#include "comm/core.h"

namespace tessera {

class Watch {
 public:
  // A rank that died may have done its part of this call before, and the living may finish it: a
  // death counts after so long a standstill.
  static constexpr std::chrono::milliseconds kGrace{500};

  explicit Watch(const Core& core)
      : core_(core),
        deadline_(Deadline::after(core.config.timeout)),
        grace_(Deadline::after(kGrace)) {}

  void restart() {
    restart_clocks();
    moved_ = ~uint64_t{0};
  }

  // After each sleep. `moved` changes with progress; `diagnose(overdue)` explains a standstill.
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
    Status s = diagnose(deadline_.passed());
    return s.ok() ? s : core_.health->raise(s);
  }

 private:
  void restart_clocks() {
    deadline_ = Deadline::after(core_.config.timeout);
    grace_ = Deadline::after(kGrace);
  }

  const Core& core_;
  Deadline deadline_;
  Deadline grace_;
  uint64_t moved_ = ~uint64_t{0};
};

}  // namespace tessera
