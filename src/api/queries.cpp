// What a program may ask: version, and size, rank and device of a communicator. Never waits for a
// call in progress.
#include "api/errors.h"
#include "api/export.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

Result<CommView> ready_view(ncclComm_t comm, const char* function, const void* out) {
  Result<CommView> seen = view(comm, function);
  if (!seen.ok()) return seen;
  if (out == nullptr)
    return fail(Code::kInvalidArgument, "{}: the result pointer is NULL", function);
  if (seen->phase == Phase::kFailed) return seen->init_error;
  if (seen->comm == nullptr)
    return fail(Code::kInvalidArgument,
                "{}: the communicator is still being initialised. Poll ncclCommGetAsyncError until "
                "it no longer reports ncclInProgress.",
                function);
  return seen;
}

template <class Answer>
ncclResult_t ask(ncclComm_t comm, const char* function, int* out, Answer&& answer) {
  return entry([&]() -> Status {
    Result<CommView> seen = ready_view(comm, function, out);
    if (!seen.ok()) return seen.status();
    *out = answer(seen.value());
    return {};
  });
}

}  // namespace
}  // namespace tessera::api

using tessera::api::ask;
using tessera::api::CommView;

TSR_API(ncclResult_t, GetVersion, (int* version)) {
  return tessera::api::entry([&]() -> tessera::Status {
    if (version == nullptr)
      return tessera::api::fail(tessera::Code::kInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    return {};
  });
}
TSR_API(ncclResult_t, CommCount, (const ncclComm_t comm, int* count)) {
  return ask(comm, "ncclCommCount", count, [](const CommView& seen) { return seen.comm->size(); });
}
TSR_API(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank)) {
  return ask(comm, "ncclCommUserRank", rank,
             [](const CommView& seen) { return seen.comm->rank(); });
}
TSR_API(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device)) {
  return ask(comm, "ncclCommCuDevice", device,
             [](const CommView& seen) { return seen.state->device; });
}
