// What a rank's run of any call goes through: a state machine that never blocks.
//
//   begin -> (eager) running -> done
//   begin -> (bulk)  rendezvous -> running -> done
//
// Collectives (collective_run.h) and transfers between two ranks (pair_run.h) say how they begin,
// what they run once all parties have met, and how they explain what went wrong.
// Thread safety: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "comm/communicator.h"
#include "comm/program_run.h"
#include "comm/rendezvous.h"
#include "comm/visit.h"

namespace tessera {

class CallRun {
 public:
  // kDone, kBlocked (call again), or kFailed: status() says why. What it posts to ports leaves when
  // the caller lets them progress().
  Progress advance(int spins);
  const Status& status() const { return status_; }
  // Ends a run that the communicator's error overtook.
  void abandon();
  // Changes with everything done.
  uint64_t moved() const { return rendezvous_.moved() + run_.moved(); }

 protected:
  enum class Stage : uint8_t { kIdle, kRendezvous, kRunning };

  CallRun(Core& core, Sharing& sharing)
      : core_(core), sharing_(sharing), space_(0), rendezvous_(core, sharing), visit_(core) {}
  ~CallRun() = default;

  // All parties have announced the same call: chooses a plan and starts it.
  virtual Status start_bulk() = 0;
  // Why fingerprints differ, as far as it is on record; never ok.
  virtual Status mismatch() = 0;
  // Peers can put nothing into the user's memory any more.
  virtual void forget_memory() = 0;
  virtual void abandoned() {}

  // With NCCL_DEBUG=TRACE, a line that says what the call runs as; else a comparison.
  void trace(const Candidate& candidate, const Choice& choice) const {
    if (core_.config.debug >= log::Level::kTrace) [[unlikely]]
      write_trace(candidate, choice);
  }

  Core& core_;
  Sharing& sharing_;
  HostSpace space_;
  ProgramRun run_;
  Rendezvous rendezvous_;
  Visit visit_;
  Stage stage_ = Stage::kIdle;
  Call call_;
  CallRecord record_;           // of the last call
  uint64_t announcements_ = 0;  // bulk calls begun
  Status status_;
  std::vector<int> names_;  // member -> rank

 private:
  void write_trace(Candidate candidate, const Choice& choice) const;
  Progress finish_step(Progress progress);
  Progress fail(const Status& status);
};

}  // namespace tessera
