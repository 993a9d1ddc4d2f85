// The state of a communicator's health, shared by its ranks: the first error, who is alive, who has
// left. Whoever finds a fault raises it; all ranks then end their waits with the same text.
// Thread safety: any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/liveness.h"
#include "comm/ports.h"
#include "comm/segment_layout.h"
#include "sync/flag.h"

namespace tessera {

class Health {
 public:
  // `ports` may be null; else it outlives this.
  Health(SegmentView view, int rank, int ranks, std::string name, Liveness liveness,
         const Ports* ports);

  // After an error of whatever kind, until it stands in the record that peers look at; bounded.
  void await_claim() const;
  // True while nothing is known to be wrong. A few loads of lines that are rarely written.
  bool good() const {
    return !aborted_.raised() && !revoked_.raised() && !header_->error.claimed();
  }

  // The reason why not; ok while good. A peer that died while it wrote its reason is reported as
  // such.
  Status status() const;

  // Makes `status` the communicator's error, unless there is one, wakes all ranks and returns the
  // error that holds now.
  Status raise(const Status& status);

  // Looks for dead or departed peers; costs system calls. ok, or the error it raised.
  Status look();

  // What to report for a wait that ended at its deadline with `overdue` (Liveness::explain).
  Status explain(const Status& overdue) const { return liveness_.explain(who(), overdue); }

  // This rank itself was aborted: even set-up calls end.
  bool aborted() const { return aborted_.raised(); }
  bool peer_dead(int peer) const {
    return liveness_.dead(peer) || connection_lost(peer) != nullptr;
  }
  // Those of `ranks` of which it is true; a few system calls for all.
  std::vector<int> dead_among(std::span<const int> ranks) const;
  // Why nothing comes from a rank of another host any more; null: it does, or is of this host.
  const std::string* connection_lost(int peer) const {
    return ports_ != nullptr ? ports_->lost(peer) : nullptr;
  }

  // This rank stops: own waits end at once, peers are told.
  void abort() { stop(aborted_, "aborted"); }
  void revoke() { stop(revoked_, "revoked"); }

  std::string who() const;  // "rank 3 of \"tp\"": how messages of this rank begin

 private:
  void stop(Flag& flag, const char* how);
  const ErrorRecord* await_reason() const;
  void wake_all();

  SegmentView view_;
  SegmentHeader* header_;
  int rank_, ranks_;
  std::string name_;
  Liveness liveness_;
  const Ports* ports_;
  Flag aborted_, revoked_;
};

}  // namespace tessera
