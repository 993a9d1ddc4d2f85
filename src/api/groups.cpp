#include "api/groups.h"

#include <utility>

#include "api/batch.h"
#include "api/errors.h"
#include "api/estimate.h"
#include "api/export.h"
#include "api/handles.h"
#include "api/launch.h"

namespace tessera::api {
namespace {

enum class Mode : uint8_t { kUnknown, kBlocking, kNonBlocking };

struct Group {
  Status error;
  std::vector<Job> jobs;
  std::vector<Collected> calls;
  Mode mode = Mode::kUnknown;
};

// The depth apart: it is all that a call outside of groups looks at.
thread_local int t_depth = 0;
thread_local Group t_group;

Status check_mode(bool blocking) {
  const Mode mode = blocking ? Mode::kBlocking : Mode::kNonBlocking;
  if (t_group.mode == Mode::kUnknown) t_group.mode = mode;
  if (t_group.mode == mode) return {};
  return fail(Code::kInvalidArgument,
              "a group cannot hold calls on blocking and on non-blocking communicators; use two "
              "groups, or the same config.blocking (or NCCL_COMM_BLOCKING) for all");
}

Status start() {
  ++t_depth;
  return {};
}

Status check_open(const char* function) {
  if (t_depth > 0) return {};
  return fail(Code::kInvalidUsage, "{} without ncclGroupStart in this thread", function);
}

void take_back(const std::vector<Job>& jobs) {
  for (const Job& job : jobs)
    if (job.settle) job.settle(false);
}

// Communicators first: calls of the group cannot use them yet, and other ranks wait for them.
Status run(Group& group) {
  Status status = group.error;
  if (status.ok()) status = match_own_sends(group.calls);
  if (!status.ok()) {
    take_back(group.jobs);
    return status;
  }
  Status jobs = run_jobs(std::move(group.jobs));
  if (!jobs.ok() && jobs.code() != Code::kInProgress) return jobs;
  std::erase_if(group.calls, [](const Collected& item) { return moves_nothing(item.call); });
  status = launch(group.calls);
  return status.ok() ? jobs : status;
}

Status end() {
  if (Status status = check_open("ncclGroupEnd"); !status.ok()) return status;
  if (--t_depth > 0) return {};
  Group group = std::exchange(t_group, Group());
  Status status = run(group);
  group.calls.clear();
  t_group.calls.swap(group.calls);  // its memory serves the next group
  return status;
}

Status check_sim_info(const ncclSimInfo_t* info) {
  if (info == nullptr) return {};
  if (info->magic == 0x74685283 && info->size >= sizeof(ncclSimInfo_t)) return {};
  return fail(Code::kInvalidArgument,
              "ncclGroupSimulateEnd: simInfo is not initialised. Start from "
              "NCCL_SIM_INFO_INITIALIZER.");
}

Status simulate(Group group, ncclSimInfo_t* info) {
  take_back(group.jobs);
  if (!group.error.ok()) return group.error;
  if (!group.jobs.empty())
    return fail(Code::kInvalidUsage,
                "ncclGroupSimulateEnd: the group holds calls that create communicators or windows; "
                "only operations can be estimated");
  if (Status status = match_own_sends(group.calls); !status.ok()) return status;
  std::vector<Work> works;
  for (const Collected& item : group.calls)
    if (!moves_nothing(item.call)) works.push_back({item.state->comm.get(), item.call});
  if (info != nullptr) info->estimatedTime = static_cast<float>(estimate_microseconds(works));
  return {};
}

Status simulate_end(ncclSimInfo_t* info) {
  if (Status status = check_open("ncclGroupSimulateEnd"); !status.ok()) return status;
  const Status valid = check_sim_info(info);
  if (--t_depth > 0) return note_in_group(valid);
  Group group = std::exchange(t_group, Group());
  if (group.error.ok()) group.error = valid;
  return simulate(std::move(group), info);
}

// Outside of groups, on stream 0 of a blocking communicator: no allocation, one uncontended lock.
Status run_now(CommState* state, const Call& call) {
  const Work work{state->comm.get(), call};
  if (!state->ordered) return execute({&work, 1});
  const Turn turn(&state->turns);
  return execute({&work, 1});
}

Status run_later(const Request& request, const CommLock& lock, const Call& call) {
  const bool own_stream = is_stream_handle(request.stream);
  std::shared_ptr<Stream> stream = lock->worker;
  if (own_stream) {
    Result<std::shared_ptr<Stream>> found = find_stream(request.stream);
    if (!found.ok()) return found.status();
    stream = std::move(found).value();
  }
  Batch batch;
  batch.works.push_back({lock->comm.get(), call});
  batch.add_member(lock.shared(), !own_stream);
  enqueue(*stream, std::move(batch));
  return own_stream ? Status() : in_progress();
}

}  // namespace

bool in_group() { return t_depth > 0; }

Status note_in_group(Status status) {
  if (t_depth > 0 && t_group.error.ok() && !status.ok()) t_group.error = status;
  return status;
}

Status collect(const Request& request, const std::shared_ptr<CommState>& state, const Call& call) {
  if (Status status = check_mode(state->blocking()); !status.ok()) return status;
  t_group.calls.push_back({request.comm, state, call, request.stream});
  return {};
}

Status run_or_collect(Job job, bool blocking) {
  if (!in_group()) {
    std::vector<Job> jobs;
    jobs.push_back(std::move(job));
    return run_jobs(std::move(jobs));
  }
  if (Status status = check_mode(blocking); !status.ok()) {
    if (job.settle) job.settle(false);
    return note_in_group(status);
  }
  t_group.jobs.push_back(std::move(job));
  return {};
}

Status submit(const Request& request) {
  Result<CommLock> lock = CommLock::acquire(request.comm, request.function);
  if (!lock.ok()) return note_in_group(lock.status());
  CommState& state = *lock.value();
  if (Status status = check_usable(state, request.function); !status.ok())
    return note_in_group(status);
  Result<Call> call = check(request, state);
  if (!call.ok()) return note_in_group(call.status());
  if (in_group()) return note_in_group(collect(request, lock.value().shared(), call.value()));
  if (moves_nothing(call.value())) return {};
  if (to_itself(call.value(), state))
    return fail(Code::kInvalidUsage,
                "{} on {}: a send to the own rank and its receive must be in one group",
                request.function, state.label());
  if (state.blocking() && !is_stream_handle(request.stream)) return run_now(&state, call.value());
  return run_later(request, lock.value(), call.value());
}

}  // namespace tessera::api

TSR_API(ncclResult_t, GroupStart, ()) {
  return tessera::api::entry([] { return tessera::api::start(); });
}
TSR_API(ncclResult_t, GroupEnd, ()) {
  return tessera::api::entry([] { return tessera::api::end(); });
}
TSR_API(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo)) {
  return tessera::api::entry([&] { return tessera::api::simulate_end(simInfo); });
}
