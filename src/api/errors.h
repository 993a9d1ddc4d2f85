// From Status to ncclResult_t, and the texts that go with it.
//
// Whoever detects an error inside api/ makes it with fail(), which logs it and keeps it for
// ncclGetLastError. entry() wraps the body of every C entry point: it translates, and it lets no
// exception out. Thread safety: every function may be called from any thread.
#pragma once

#include <nccl.h>

#include <new>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tessera::api {

ncclResult_t to_result(Code code);

// The result for a status. A failure whose text is not the last warning already becomes it.
ncclResult_t to_result(const Status& status);

// Makes a Status, logs its text and keeps it as the last warning.
template <class... Args>
Status fail(Code code, log::Format<std::type_identity_t<Args>...> format, Args&&... args) {
  Status status(code, fmt::format(format.text, std::forward<Args>(args)...));
  log::warn_text(-1, status.message(), format.where);
  return status;
}

// body(), where running out of memory is an error like others.
template <class Body>
Status guarded(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(Code::kSystem, "out of memory");
  }
}

// Runs the body of an entry point, a callable that returns Status.
template <class Body>
ncclResult_t entry(Body&& body) {
  const Status status = guarded(body);
  return status.ok() ? ncclSuccess : to_result(status);
}

// A call that goes on in the background. Not an error: never logged.
Status in_progress();

}  // namespace tessera::api
