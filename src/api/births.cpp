#include "api/births.h"

#include "api/errors.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

Status aborted_meanwhile(std::unique_ptr<Communicator> comm) {
  if (comm != nullptr) comm->abort();
  return fail(Code::kInvalidUsage, "the communicator was aborted while it was being initialised");
}

}  // namespace

Result<Prepared> prepare(Settings settings, std::shared_ptr<Clique> clique, int device) {
  auto state = std::make_shared<CommState>(std::move(settings), std::move(clique), device);
  if (!state->blocking()) {
    Result<std::shared_ptr<Stream>> stream = Stream::start();
    if (!stream.ok()) return stream.status();
    state->worker = std::move(stream).value();
  }
  Result<ncclComm_t> handle = add_comm(state);
  if (!handle.ok()) return handle.status();
  return Prepared{handle.value(), std::move(state)};
}

Status give_birth(const Birth& birth) {
  Result<std::unique_ptr<Communicator>> made = birth.make();
  if (birth.child.handle == nullptr) return made.status();
  std::optional<CommLock> lock = CommLock::find(birth.child.handle);
  if (!lock.has_value()) return aborted_meanwhile(made.ok() ? std::move(made).value() : nullptr);
  if (made.ok() && made.value() == nullptr)
    made = Result<std::unique_ptr<Communicator>>(
        fail(Code::kInternal, "no communicator was made for a rank that asked for one"));
  lock->update([&](CommState& state) {
    state.phase = made.ok() ? Phase::kReady : Phase::kFailed;
    state.init_error = made.status();
    if (made.ok()) state.comm = std::move(made).value();
  });
  return made.status();
}

Job blocking_job(Birth birth) {
  *birth.out = nullptr;
  return {nullptr, [birth] { return give_birth(birth); },
          [birth](bool all_succeeded) {
            if (all_succeeded)
              *birth.out = birth.child.handle;
            else
              drop_comm(birth.child.handle);
          }};
}

Job background_job(Birth birth, std::function<Status(Stream::Task)> start) {
  *birth.out = birth.child.handle;
  return {nullptr,
          [birth, start = std::move(start)]() -> Status {
            const Status status = start([birth] { return give_birth(birth); });
            return status.ok() ? in_progress() : status;
          },
          [birth](bool all_succeeded) {
            if (all_succeeded) return;
            drop_comm(birth.child.handle);
            *birth.out = nullptr;
          }};
}

}  // namespace tessera::api
