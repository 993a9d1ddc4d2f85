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

#include "comm/call_run.h"
#include "comm/plan_store.h"

namespace tessera {

// One direction between this rank and a peer: member 0 of its plans sends, 1 receives.
class PairRun final : public CallRun {
 public:
  PairRun(Core& core, PlanStore& plans, Sharing& sharing, int peer, bool receives);

  Status begin(const Call& call);
  Status diagnose(bool overdue);

 private:
  // Plans with memory of their own in the pair's region.
  enum Protocol : uint8_t { kEager, kStaged, kDirect, kProtocols };

  Status start_bulk() override;
  Status mismatch() override;
  void forget_memory() override {
    if (core_.ports) receives_ ? core_.ports->forget(peer_) : core_.ports->forget_send();
  }
  Status start(const Choice& choice, Protocol protocol);
  Status disagreement() const;

  PlanStore& plans_;
  Tuner& tuner_;
  int peer_;
  bool receives_;
  Party party_;
  uint64_t next_pass_[kProtocols] = {};
  std::vector<uint64_t> seen_[kProtocols];
  std::byte* regions_[kProtocols][2] = {};
  bool committed_[kProtocols] = {};
  host::Place inputs_[2], outputs_[2];
  MemberWay ways_[2];
};

}  // namespace tessera
