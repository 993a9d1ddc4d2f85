// Communicators from communicators: ncclCommSplit, ncclCommShrink.
#include <algorithm>
#include <vector>

#include "api/births.h"
#include "api/errors.h"
#include "api/export.h"
#include "api/groups.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

using Made = Result<std::unique_ptr<Communicator>>;
using Make = std::function<Made(Communicator&, const CommOptions&)>;

struct DeriveRequest {
  const char* function;
  ncclComm_t parent;
  ncclComm_t* out;
  const ncclConfig_t* config;
  bool gets_communicator;
  // Who makes such a call together: 0 for all ranks (split), else of the ranks left (shrink).
  uint64_t callers;
  uint64_t salt;  // equal on the ranks that end up together
  Make make;
};

Status check_parent(const CommState& parent, const char* function) {
  if (parent.phase == Phase::kRevoked) return {};
  return check_usable(parent, function);
}

// Blocking parents: the parent is held while the ranks talk.
Made make_holding_parent(const DeriveRequest& request, const CommOptions& options) {
  Result<CommLock> parent = CommLock::acquire(request.parent, request.function);
  if (!parent.ok()) return parent.status();
  if (Status status = check_parent(*parent.value(), request.function); !status.ok()) return status;
  if (!parent.value()->ordered) return request.make(*parent.value()->comm, options);
  const Turn turn(&parent.value()->turns);
  return request.make(*parent.value()->comm, options);
}

// Non-blocking parents: the work goes to the parent's worker, in its turn.
Status start_on_parent(ncclComm_t handle, const char* function,
                       const std::function<void(const std::shared_ptr<CommState>&)>& attach,
                       Stream::Task task) {
  Result<CommLock> parent = CommLock::acquire(handle, function);
  if (!parent.ok()) return parent.status();
  const std::shared_ptr<CommState> state = parent.value().shared();
  if (Status status = check_parent(*state, function); !status.ok()) return status;
  attach(state);
  state->ordered = true;
  state->progress.begin();
  state->worker->enqueue([state, ticket = state->turns.take(), task = std::move(task)] {
    Status status;
    {
      const Turn turn(&state->turns, ticket);
      status = task();
    }
    state->progress.end(status);
    return status;
  });
  return {};
}

Job background_job_on_parent(const DeriveRequest& request, const CommOptions& options,
                             Birth birth) {
  auto parent = std::make_shared<std::shared_ptr<CommState>>();
  birth.make = [parent, options, make = request.make] { return make(*(*parent)->comm, options); };
  const auto attach = [parent](const std::shared_ptr<CommState>& state) { *parent = state; };
  return background_job(std::move(birth), [handle = request.parent, function = request.function,
                                           attach](Stream::Task task) {
    return start_on_parent(handle, function, attach, std::move(task));
  });
}

// Does not keep the parent's lock: the job takes it itself.
Result<Job> job_for(const DeriveRequest& request, bool* blocking) {
  Result<CommLock> lock = CommLock::acquire(request.parent, request.function);
  if (!lock.ok()) return lock.status();
  CommState& parent = *lock.value();
  if (Status status = check_parent(parent, request.function); !status.ok()) return status;
  const Config config = parent.comm->options().config;
  Result<Settings> settings = read_settings(request.config, config.blocking, &parent.settings);
  if (!settings.ok()) return settings.status();
  const CommOptions options{config, settings->comm_name};
  *blocking = parent.blocking();

  const uint64_t parts[] = {++parent.derived[request.callers], request.salt};
  Birth birth{{}, request.out, nullptr};
  if (request.gets_communicator) {
    Result<Prepared> child = prepare(
        std::move(settings).value(),
        Clique::find_or_make(mix(parent.clique->key(), parts, sizeof(parts))), parent.device);
    if (!child.ok()) return child.status();
    birth.child = std::move(child).value();
  }
  if (!*blocking) return background_job_on_parent(request, options, std::move(birth));
  birth.make = [request, options] { return make_holding_parent(request, options); };
  return blocking_job(std::move(birth));
}

Status derive(const DeriveRequest& request) {
  bool blocking = true;
  Result<Job> job = job_for(request, &blocking);
  if (!job.ok()) return job.status();
  job->communicator = request.parent;
  return run_or_collect(std::move(job).value(), blocking);
}

Status split(ncclComm_t comm, int color, int key, ncclComm_t* out, const ncclConfig_t* config) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "ncclCommSplit: newcomm is NULL");
  *out = nullptr;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
    return fail(Code::kInvalidArgument,
                "ncclCommSplit: color {} is negative; colours are 0 or more, or "
                "NCCL_SPLIT_NOCOLOR for a rank that gets no communicator",
                color);
  return derive({"ncclCommSplit", comm, out, config, color >= 0, 0, static_cast<uint64_t>(color),
                 [color, key](Communicator& parent, const CommOptions& options) {
                   return parent.split(color, key, options);
                 }});
}

// Sorted copy of the caller's list.
Result<std::vector<int>> check_excluded(const CommView& parent, const int* list, int count) {
  if (list == nullptr || count <= 0)
    return fail(Code::kInvalidArgument,
                "ncclCommShrink: the list of ranks to exclude is empty ({} entries at {})", count,
                static_cast<const void*>(list));
  std::vector<int> excluded(list, list + count);
  std::sort(excluded.begin(), excluded.end());
  const int ranks = parent.comm->size();
  for (const int rank : {excluded.front(), excluded.back()})
    if (rank < 0 || rank >= ranks)
      return fail(Code::kInvalidArgument,
                  "ncclCommShrink: excluded rank {} is out of range; the ranks are 0 to {}", rank,
                  ranks - 1);
  const auto twin = std::adjacent_find(excluded.begin(), excluded.end());
  if (twin != excluded.end())
    return fail(Code::kInvalidArgument, "ncclCommShrink: rank {} is listed twice", *twin);
  if (std::binary_search(excluded.begin(), excluded.end(), parent.comm->rank()))
    return fail(Code::kInvalidArgument,
                "ncclCommShrink: rank {} is called by itself and listed; excluded ranks do not "
                "call",
                parent.comm->rank());
  return excluded;
}

Status shrink(ncclComm_t comm, const int* list, int count, ncclComm_t* out,
              const ncclConfig_t* config, int flags) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "ncclCommShrink: newcomm is NULL");
  *out = nullptr;
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
    return fail(Code::kInvalidArgument,
                "ncclCommShrink: shrinkFlags {:#x} has unknown bits; allowed: NCCL_SHRINK_DEFAULT, "
                "NCCL_SHRINK_ABORT",
                flags);
  Result<CommView> parent = view(comm, "ncclCommShrink");
  if (!parent.ok()) return parent.status();
  if (parent->comm == nullptr)
    return fail(Code::kInvalidArgument,
                "ncclCommShrink: the communicator is not initialised (yet); see "
                "ncclCommGetAsyncError");
  Result<std::vector<int>> excluded = check_excluded(parent.value(), list, count);
  if (!excluded.ok()) return excluded.status();
  // A revoked communicator still shrinks, an aborted one does not. Before the lock: a call may hold
  // it.
  if (flags == NCCL_SHRINK_ABORT) parent->comm->revoke();
  const uint64_t salt = mix(1, excluded->data(), excluded->size() * sizeof(int));
  return derive(
      {"ncclCommShrink", comm, out, config, true, salt, salt,
       [ranks = std::move(excluded).value()](Communicator& above, const CommOptions& options) {
         return above.shrink(ranks, options);
       }});
}

}  // namespace
}  // namespace tessera::api

TSR_API(ncclResult_t, CommSplit,
        (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config)) {
  return tessera::api::entry([&] {
    return tessera::api::note_in_group(tessera::api::split(comm, color, key, newcomm, config));
  });
}
TSR_API(ncclResult_t, CommShrink,
        (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
         ncclConfig_t* config, int shrinkFlags)) {
  return tessera::api::entry([&] {
    return tessera::api::note_in_group(tessera::api::shrink(
        comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
  });
}
