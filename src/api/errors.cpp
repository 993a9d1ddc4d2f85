#include "api/errors.h"

#include "api/export.h"

namespace tessera::api {

ncclResult_t to_result(Code code) {
  switch (code) {
    case Code::kOk:
      return ncclSuccess;
    case Code::kInvalidArgument:
      return ncclInvalidArgument;
    case Code::kInvalidUsage:
      return ncclInvalidUsage;
    case Code::kSystem:
      return ncclSystemError;
    case Code::kRemote:
    case Code::kTimeout:
      return ncclRemoteError;
    case Code::kInProgress:
      return ncclInProgress;
    case Code::kInternal:
    case Code::kPlanInvalid:
    case Code::kPlanCoverage:
    case Code::kPlanCounter:
    case Code::kPlanDeadlock:
    case Code::kPlanRace:
      return ncclInternalError;
  }
  return ncclInternalError;
}

ncclResult_t to_result(const Status& status) {
  if (status.ok()) return ncclSuccess;
  if (status.code() != Code::kInProgress) {
    // The log keeps a bounded prefix of the text.
    const std::string last = log::last_warning();
    if (last.empty() || status.message().compare(0, last.size(), last) != 0)
      log::warn_text(-1, status.message());
  }
  return to_result(status.code());
}

Status in_progress() {
  return Status(Code::kInProgress,
                "the call goes on in the background; ncclCommGetAsyncError tells when it ends");
}

}  // namespace tessera::api

// The leading words are NCCL's: programs look for them.
TSR_API(const char*, GetErrorString, (ncclResult_t result)) {
  switch (static_cast<int>(result)) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for what the call was doing)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for what the call was doing)";
    case ncclInternalError:
      return "internal error - a defect of the library; please report it";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN, or ask ncclGetLastError, for which one)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN, or ask ncclGetLastError, for the reason)";
    case ncclRemoteError:
      return "remote process exited, aborted or did not answer in time (see ncclGetLastError)";
    case ncclInProgress:
      return "NCCL operation in progress";
    case 8:
      return "timeout";
    default:
      return "unknown result code";
  }
}

TSR_API(const char*, GetLastError, (ncclComm_t)) {
  thread_local char text[1024];
  const std::string last = tessera::log::last_warning();
  text[last.copy(text, sizeof(text) - 1)] = '\0';
  return text;
}

// Both names are strong, and both are exported: profilers of older versions call them.
TSR_API(void, ResetDebugInit, ()) {}
// NOLINTNEXTLINE(readability-identifier-naming): NCCL's name
extern "C" TSR_VISIBLE void ncclResetDebugInitInternal() {}
