#include "comm/call_run.h"

#include <cstring>

#include "comm/call_record.h"

namespace tessera {

Progress CallRun::advance(int spins) {
  if (stage_ == Stage::kIdle) return status_.ok() ? Progress::kDone : Progress::kFailed;
  if (stage_ == Stage::kRendezvous) {
    Result<bool> met = rendezvous_.advance(spins);
    if (rendezvous_.disagrees()) return fail(mismatch());
    if (!met.ok()) return fail(met.status());
    if (!met.value()) return Progress::kBlocked;
    if (Status s = start_bulk(); !s.ok()) return fail(s);
  }
  return finish_step(run_.advance(space_, spins));
}

Progress CallRun::finish_step(Progress progress) {
  switch (progress) {
    case Progress::kBlocked:
      return progress;
    case Progress::kDone:
      if (core_.ports && !core_.ports->flushed()) return Progress::kBlocked;
      stage_ = Stage::kIdle;
      visit_.end();
      forget_memory();
      return progress;
    case Progress::kMismatch:
      return fail(mismatch());
    case Progress::kFailed:
      break;
  }
  return fail(Status::error(
      Code::kRemote, "{}: {}: the memory of process {} could not be reached: {}; it may have ended",
      core_.health->who(), describe(record_), space_.error_pid(), std::strerror(space_.error())));
}

void CallRun::abandon() {
  stage_ = Stage::kIdle;
  visit_.end();
  if (core_.ports) core_.ports->retract();
  abandoned();
}

void CallRun::write_trace(Candidate candidate, const Choice& choice) const {
  if (candidate.protocol == Protocol::kStaged && call_.collective != Collective::kBarrier)
    candidate.slot_bytes = choice.slot_bytes;
  log::trace(core_.rank, "{}: blocks of {} bytes, runs as {}", describe(record_),
             call_.count * size_of(call_.type), describe(candidate));
}

Progress CallRun::fail(const Status& status) {
  Status first = core_.health->raise(status);
  abandon();
  status_ = std::move(first);
  return Progress::kFailed;
}

}  // namespace tessera
