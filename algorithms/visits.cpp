#include "algorithms/visits.h"

namespace tessera {

Visits::Visits(PlanBuilder& plan, int ranks)
    : plan_(plan), ranks_(ranks), pairs_(ranks, std::vector<Pair>(ranks)) {}

void Visits::allow(int visitor, int owner) {
  pairs_[visitor][owner] = {plan_.counter(visitor), plan_.counter(owner)};
}

void Visits::allow_all() {
  for (int visitor = 0; visitor < ranks_; ++visitor) {
    for (int owner = 0; owner < ranks_; ++owner) {
      if (visitor != owner) allow(visitor, owner);
    }
  }
}

void Visits::enter() {
  for (int owner = 0; owner < ranks_; ++owner) {
    StepRef step = plan_.lane(owner).sync();
    for (int s = 1; s < ranks_; ++s) {
      const int visitor = (owner + s) % ranks_;
      if (allowed(visitor, owner)) step.signal(visitor, pairs_[visitor][owner].entered);
    }
  }
}

void Visits::begin(StepRef step, int visitor, int owner) const {
  step.wait(pairs_[visitor][owner].entered);
}

void Visits::end(StepRef step, int visitor, int owner) const {
  step.signal(owner, pairs_[visitor][owner].done);
}

void Visits::leave() {
  for (int owner = 0; owner < ranks_; ++owner) {
    StepRef step = plan_.lane(owner).sync();
    for (int s = 1; s < ranks_; ++s) {
      const int visitor = (owner + s) % ranks_;
      if (allowed(visitor, owner)) step.wait(pairs_[visitor][owner].done);
    }
  }
}

}  // namespace tessera
