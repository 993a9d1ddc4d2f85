// A rank's execution of one collective: a state machine that never blocks.
//
//   begin -> (eager) running -> done
//   begin -> (bulk)  rendezvous -> running -> done
//
// Thread safety: one thread at a time. One collective at a time per object. Repeated eager calls
// allocate nothing.
#pragma once

#include <array>
#include <vector>

#include "comm/communicator.h"
#include "comm/plan_store.h"
#include "comm/program_run.h"
#include "comm/reduction.h"
#include "comm/rendezvous.h"
#include "comm/visit.h"

namespace tessera {

class CollectiveRun {
 public:
  CollectiveRun(Core& core, PlanStore& plans, Sharing& sharing);

  Status begin(const Call& call);

  // kDone, kBlocked (call again), or kFailed: status() says why.
  Progress advance(int spins);
  const Status& status() const { return status_; }
  // Ends a run that the communicator's error overtook.
  void abandon();

  // Covers all calls begun so far; equal on ranks that agree.
  uint64_t fingerprint() const { return record_.fingerprint; }
  // For ranks whose fingerprints differ: who passed what, as far as it is on record.
  Status mismatch();

  uint64_t moved() const { return rendezvous_.moved() + run_.moved(); }
  // True if a blocked run had better look on for a while than give the processor away: all ranks
  // need each other, and none that this rank waits for is a `neighbour` that needs this processor
  // to go on. Where data flows one way, and before all have met, a neighbour always may.
  template <class Pred>
  bool worth_patience(const Pred& neighbour) {
    return stage_ == Stage::kRunning && !has_root(call_.collective) &&
           !run_.awaits(space_, neighbour);
  }
  bool idle() const { return stage_ == Stage::kIdle; }

  // For a run that stands still: the fault that explains it, if one can be seen (ranks disagree, a
  // peer has left); else ok. `overdue`: the deadline has passed; then it is never ok.
  Status diagnose(bool overdue);

 private:
  enum class Stage : uint8_t { kIdle, kRendezvous, kRunning };

  Progress fail(Status status);
  Status begin_eager(const Tuner::Eager& eager);
  void begin_bulk();
  bool root_copies() const;
  Status choose_bulk_plan();
  bool in_place(size_t output_bytes) const;
  void start(LinkedPlan& plan);
  bool repeats(const Call& call) const;
  Progress finish_step(Progress progress);
  Status disagreement(int peer) const;
  void set_own_buffers();
  void write_record();

  Core& core_;
  PlanStore& plans_;
  Sharing& sharing_;
  HostSpace space_;
  ProgramRun run_;
  Rendezvous rendezvous_;
  ReductionSetup reduction_;
  Visit visit_;
  Stage stage_ = Stage::kIdle;
  // plan of the last call, if it was eager: the same call again needs no set-up
  LinkedPlan* repeatable_ = nullptr;
  Call call_;
  CallRecord record_;           // of the last call
  uint64_t announcements_ = 0;  // bulk collectives begun
  Status status_;
  std::vector<Party> parties_;
  std::vector<int> names_;  // member -> rank: the identity
  std::vector<host::Place> inputs_, outputs_;
  // by root and number of the eager choice
  std::array<std::vector<LinkedPlan*>, kCollectives> eager_;
};

}  // namespace tessera
