// Sends and receives of one rank: state machines, one at a time per (peer, direction), in the order
// given.
//
//   eager  small: the sender puts into the receiver's slots without meeting it; a full ring of
//          slots holds it up.
//   bulk   both ends meet (rendezvous), then move: direct, or through slots.
//
// Regions of pairs lie at fixed places in the arenas: the same program serves every pair.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/plan_store.h"
#include "comm/program_run.h"
#include "comm/rendezvous.h"
#include "comm/visit.h"

namespace tessera {

// One direction between this rank and a peer.
class PairRun {
 public:
  PairRun(Core& core, PlanStore& plans, Sharing& sharing, int peer, bool receives);

  Status begin(const Call& call);
  Progress advance(int spins);
  const Status& status() const { return status_; }
  // Ends a run that the communicator's error overtook.
  void abandon();
  uint64_t moved() const { return rendezvous_.moved() + run_.moved(); }
  Status diagnose(bool overdue);

 private:
  enum class Stage : uint8_t { kIdle, kRendezvous, kRunning };
  // Plans with memory of their own in the pair's region.
  enum Protocol : uint8_t { kEager, kStaged, kDirect, kProtocols };

  Progress fail(Status status);
  Progress finish_step(Progress progress);
  Status start(const Choice& choice, Protocol protocol);
  Status disagreement() const;

  Core& core_;
  PlanStore& plans_;
  Sharing& sharing_;
  Tuner& tuner_;
  int peer_;
  bool receives_;
  HostSpace space_;
  ProgramRun run_;
  Rendezvous rendezvous_;
  Party party_;
  Visit visit_;
  Stage stage_ = Stage::kIdle;
  Call call_;
  CallRecord record_;
  uint64_t announcements_ = 0;
  uint64_t next_pass_[kProtocols] = {};
  std::vector<uint64_t> seen_[kProtocols];
  Status status_;
  std::vector<int> names_;  // member (0 sends, 1 receives) -> rank
  std::byte* regions_[kProtocols][2] = {};
  bool committed_[kProtocols] = {};
  host::Place inputs_[2], outputs_[2];
  Way ways_[2];
};

}  // namespace tessera
