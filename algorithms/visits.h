// Direct access to a peer's user buffers: who may touch whose, and from when to when.
//
//      owner     enter --- entered +1 ---.                      .--> leave: wait for every visitor
//                                         \                    /
//      visitor   enter                     `-> read and write -'  done +1
//
// A visit is a pair (visitor, owner). The visitor touches the owner's buffers only after the owner
// has begun the pass, and the owner ends the pass only after the visitor has finished. A pair's
// counters are its own, so that what they announce is plain.
#pragma once

#include <vector>

#include "algorithms/exchange.h"

namespace tessera {

class Visits {
 public:
  Visits(PlanBuilder& plan, int ranks);

  void allow(int visitor, int owner);
  void allow_all();  // every pair
  int ranks() const { return ranks_; }

  // For every rank: the first step of its lane says that its buffers may be touched. After all
  // allow().
  void enter();
  // `step` is the visitor's first that touches the owner's buffers; it is the last; both.
  void begin(StepRef step, int visitor, int owner) const;
  void end(StepRef step, int visitor, int owner) const;
  // For every rank: waits until all visitors are done.
  void leave();

 private:
  struct Pair {
    int entered = -1;  // counter of the visitor
    int done = -1;     // counter of the owner
  };
  bool allowed(int visitor, int owner) const { return pairs_[visitor][owner].entered >= 0; }

  PlanBuilder& plan_;
  int ranks_;
  std::vector<std::vector<Pair>> pairs_;  // [visitor][owner]
};

}  // namespace tessera
