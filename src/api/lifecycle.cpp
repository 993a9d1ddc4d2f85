// The end of communicators, and their state: ncclCommFinalize, Destroy, Abort, Revoke,
// GetAsyncError.
#include "api/errors.h"
#include "api/export.h"
#include "api/groups.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

// Everything issued before has ended when this returns. Under the call lock.
void drain(CommState* state) {
  if (state->ordered) const Turn turn(&state->turns);
}

Status check_ended(const CommState& state, const char* function) {
  if (state.phase != Phase::kInitialising && (state.blocking() || !state.progress.running()))
    return {};
  return fail(
      Code::kInvalidArgument,
      "{}: a call on {} is still in progress. Poll ncclCommGetAsyncError until it no longer "
      "reports ncclInProgress, or use ncclCommAbort.",
      function, state.label());
}

Status check_finalizable(const CommState& state) {
  if (state.phase != Phase::kFinalized) return check_usable(state, "ncclCommFinalize");
  return fail(Code::kInvalidArgument, "ncclCommFinalize: {} was finalised already", state.label());
}

// Marks the communicator and returns what has to run. The lock is not held while peers are waited
// for: the phase keeps others out.
Status finalize_now(ncclComm_t comm) {
  std::shared_ptr<CommState> state;
  {
    Result<CommLock> lock = CommLock::acquire(comm, "ncclCommFinalize");
    if (!lock.ok()) return lock.status();
    if (Status status = check_finalizable(*lock.value()); !status.ok()) return status;
    state = lock.value().shared();
    drain(state.get());
    lock.value().update([](CommState& changed) { changed.phase = Phase::kFinalized; });
  }
  if (state->blocking()) return state->clique->finalize(state->comm);
  state->progress.begin();
  state->worker->enqueue([state] {
    const Status status = state->clique->finalize(state->comm);
    state->progress.end(status);
    return status;
  });
  return in_progress();
}

Status finalize(ncclComm_t comm) {
  if (comm == nullptr) return {};
  bool blocking = true;
  {
    Result<CommLock> lock = CommLock::acquire(comm, "ncclCommFinalize");
    if (!lock.ok()) return lock.status();
    if (Status status = check_finalizable(*lock.value()); !status.ok()) return status;
    blocking = lock.value()->blocking();
  }
  return run_or_collect({comm, [comm] { return finalize_now(comm); }, nullptr}, blocking);
}

Status destroy(ncclComm_t comm) {
  if (comm == nullptr) return {};
  Result<CommLock> lock = CommLock::acquire(comm, "ncclCommDestroy");
  if (!lock.ok()) return lock.status();
  if (Status status = check_ended(*lock.value(), "ncclCommDestroy"); !status.ok()) return status;
  drain(&*lock.value());
  lock.value().release();
  return {};
}

// A call in progress holds the call lock; the abort makes it end soon.
Status abort(ncclComm_t comm) {
  if (comm == nullptr) return {};
  Result<CommView> seen = view(comm, "ncclCommAbort");
  if (!seen.ok()) return seen.status();
  if (seen->comm != nullptr) seen->comm->abort();
  Result<CommLock> lock = CommLock::acquire(comm, "ncclCommAbort");
  if (!lock.ok()) return lock.status();
  // It may have become ready in between.
  if (seen->comm == nullptr && lock.value()->comm != nullptr) lock.value()->comm->abort();
  // What is still queued behind other work keeps the state alive and ends at once in its turn.
  lock.value().release();
  return {};
}

Status check_revocable(Phase phase) {
  switch (phase) {
    case Phase::kReady:
      return {};
    case Phase::kInitialising:
    case Phase::kFailed:
      return fail(Code::kInvalidArgument,
                  "ncclCommRevoke: the communicator is not initialised (yet); use ncclCommAbort");
    case Phase::kRevoked:
      return fail(Code::kInvalidArgument, "ncclCommRevoke: the communicator was revoked already");
    case Phase::kFinalized:
      return fail(Code::kInvalidArgument, "ncclCommRevoke: the communicator was finalised");
  }
  return {};
}

Status revoke(ncclComm_t comm, int flags) {
  if (comm == nullptr) return {};
  if (flags != NCCL_REVOKE_DEFAULT)
    return fail(Code::kInvalidArgument,
                "ncclCommRevoke: revokeFlags is {}; only NCCL_REVOKE_DEFAULT (0) exists", flags);
  Result<CommView> seen = view(comm, "ncclCommRevoke");
  if (!seen.ok()) return seen.status();
  if (Status status = check_revocable(seen->phase); !status.ok()) return status;
  seen->comm->revoke();
  Result<CommLock> lock = CommLock::acquire(comm, "ncclCommRevoke");
  if (!lock.ok()) return lock.status();
  if (Status status = check_revocable(lock.value()->phase); !status.ok()) return status;
  lock.value().update([](CommState& state) { state.phase = Phase::kRevoked; });
  drain(&*lock.value());
  return {};
}

// Progress first: a finished background call has left its outcome before it ends.
ncclResult_t state_of(const CommView& seen) {
  if (seen.phase == Phase::kInitialising) return ncclInProgress;
  if (seen.phase == Phase::kFailed) return to_result(seen.init_error.code());
  if (seen.state->progress.running()) return ncclInProgress;
  const Status background = seen.state->progress.error();
  return to_result(background.ok() ? seen.comm->error().code() : background.code());
}

Status get_async_error(ncclComm_t comm, ncclResult_t* out) {
  Result<CommView> seen = view(comm, "ncclCommGetAsyncError");
  if (!seen.ok()) return seen.status();
  if (out == nullptr)
    return fail(Code::kInvalidArgument, "ncclCommGetAsyncError: asyncError is NULL");
  *out = state_of(seen.value());
  return {};
}

}  // namespace
}  // namespace tessera::api

using tessera::api::entry;

TSR_API(ncclResult_t, CommFinalize, (ncclComm_t comm)) {
  return entry([&] { return tessera::api::note_in_group(tessera::api::finalize(comm)); });
}
TSR_API(ncclResult_t, CommDestroy, (ncclComm_t comm)) {
  return entry([&] { return tessera::api::destroy(comm); });
}
TSR_API(ncclResult_t, CommAbort, (ncclComm_t comm)) {
  return entry([&] { return tessera::api::abort(comm); });
}
TSR_API(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags)) {
  return entry([&] { return tessera::api::revoke(comm, revokeFlags); });
}
TSR_API(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError)) {
  return entry([&] { return tessera::api::get_async_error(comm, asyncError); });
}
