// A rank's run of a collective (see call_run.h).
//
// Thread safety: one thread at a time. One collective at a time per object. Repeated eager calls
// allocate nothing.
#pragma once

#include <array>
#include <vector>

#include "comm/call_run.h"
#include "comm/plan_store.h"
#include "comm/reduction.h"

namespace tessera {

class CollectiveRun final : public CallRun {
 public:
  CollectiveRun(Core& core, PlanStore& plans, Sharing& sharing);

  Status begin(const Call& call);

  // Covers all calls begun so far; equal on ranks that agree.
  uint64_t fingerprint() const { return record_.fingerprint; }
  // For ranks whose fingerprints differ: who passed what, as far as it is on record.
  Status mismatch() override;

  // True if a blocked run had better look on for a while than give the processor away: all ranks
  // need each other, and none that this rank waits for is a `neighbour` that needs this processor
  // to go on. Where data flows one way, and before all have met, a neighbour always may.
  template <class Pred>
  bool worth_patience(const Pred& neighbour) {
    return stage_ == Stage::kRunning && !has_root(call_.collective) &&
           !run_.awaits(space_, neighbour);
  }

  // For a run that stands still: the fault that explains it, if one can be seen (ranks disagree, a
  // peer has left); else ok. `overdue`: the deadline has passed; then it is never ok.
  Status diagnose(bool overdue);

 private:
  Status start_bulk() override;
  void forget_memory() override {
    if (core_.ports) core_.ports->forget();
  }
  void abandoned() override { repeatable_ = nullptr; }
  Status begin_eager(const Tuner::Eager& eager);
  void begin_bulk();
  bool root_copies() const;
  bool in_place(size_t output_bytes) const;
  void start(LinkedPlan& plan);
  bool repeats(const Call& call) const;
  Status disagreement(int peer) const;
  void set_own_buffers();
  void write_record();

  PlanStore& plans_;
  ReductionSetup reduction_;
  // plan of the last call, if it was eager: the same call again needs no set-up
  LinkedPlan* repeatable_ = nullptr;
  const Tuner::Eager* repeated_as_ = nullptr;  // what that plan was chosen as
  std::vector<Party> parties_;
  std::vector<host::Place> inputs_, outputs_;
  // by root and number of the eager choice
  std::array<std::vector<LinkedPlan*>, kCollectives> eager_;
};

}  // namespace tessera
