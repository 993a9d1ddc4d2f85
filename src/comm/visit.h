// A run of a direct plan: this rank may read and write its peers' buffers, and they its own.
//
// On success the plan itself makes a rank wait until nobody is inside its buffers. After an error
// it does not get there: a rank that gives its buffers back to the user waits here until no living
// peer is inside a direct run any more. Such a run ends by itself (its moves wait for nobody); the
// wait is bounded all the same.
//
// No run begins unseen: who begins stores "begun", passes a full fence and looks for an error; who
// leaves after an error saw it claimed, passes a full fence and looks for "begun". One of the two
// sees the other.
// Thread safety: one thread at a time per object.
#pragma once

#include "comm/core.h"

namespace tessera {

class Visit {
 public:
  explicit Visit(Core& core) : core_(core) {}

  // Before the first access to a peer's buffers; fails if the communicator has.
  Status begin();
  void end() {
    if (inside_) core_.area().direct_ended.counter.publish(1);
    inside_ = false;
  }

 private:
  Core& core_;
  bool inside_ = false;
};

// After an error, before user buffers are given back and after the own runs have ended: waits for
// the peers' runs.
void await_visitors(Core& core);

}  // namespace tessera
