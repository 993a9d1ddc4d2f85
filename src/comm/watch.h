// Watches a standstill of one communicator: looks for its cause, and for the deadline (I6).
#pragma once

#include "base/deadline.h"
#include "comm/core.h"

namespace tessera {

class Watch {
 public:
  explicit Watch(const Core& core) : core_(core), deadline_(Deadline::after(core.config.timeout)) {}

  void restart() {
    deadline_ = Deadline::after(core_.config.timeout);
    moved_ = ~uint64_t{0};
  }

  // After each sleep. `moved` changes with progress; `diagnose(overdue)` explains a standstill.
  template <class Diagnose>
  Status look(uint64_t moved, const Diagnose& diagnose) {
    if (Status s = core_.health->look(); !s.ok()) return s;
    if (moved != moved_) {
      moved_ = moved;
      deadline_ = Deadline::after(core_.config.timeout);
      return {};
    }
    Status s = diagnose(deadline_.passed());
    return s.ok() ? s : core_.health->raise(s);
  }

 private:
  const Core& core_;
  Deadline deadline_;
  uint64_t moved_ = ~uint64_t{0};
};

}  // namespace tessera
