// Memory: ncclMemAlloc, registered buffers, windows.
#include <limits>

#include "api/errors.h"
#include "api/export.h"
#include "api/groups.h"
#include "api/handles.h"
#include "device/host/memory.h"

namespace tessera::api {
namespace {

Status allocate(void** out, size_t size) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "ncclMemAlloc: ptr is NULL");
  *out = nullptr;
  if (size == 0) return {};
  Result<void*> memory = host::memory_allocate(size);
  if (memory.ok()) *out = memory.value();
  return memory.status();
}

// Unique over all communicators, so that a handle of another one is unknown here.
uintptr_t new_handle(uint64_t tag, ncclComm_t comm, Registrations* registrations) {
  return tag << kHandleTagShift | uint64_t{slot_number(comm)} << 32 | registrations->next++;
}

Status check_range(const char* function, const void* buffer, size_t size) {
  if (buffer != nullptr && size != 0 &&
      size <= std::numeric_limits<uintptr_t>::max() - reinterpret_cast<uintptr_t>(buffer))
    return {};
  return fail(Code::kInvalidArgument, "{}: buffer {} with size {} is not a range of memory",
              function, buffer, size);
}

Status register_buffer(ncclComm_t comm, void* buffer, size_t size, void** out) {
  Result<CommLock> lock = CommLock::acquire(comm, "ncclCommRegister");
  if (!lock.ok()) return lock.status();
  if (Status status = check_usable(*lock.value(), "ncclCommRegister"); !status.ok()) return status;
  if (out == nullptr) return fail(Code::kInvalidArgument, "ncclCommRegister: handle is NULL");
  if (Status status = check_range("ncclCommRegister", buffer, size); !status.ok()) return status;
  Registrations& all = lock.value()->registrations;
  const uintptr_t handle = new_handle(kBufferTag, comm, &all);
  all.buffers[handle] = size;
  *out = reinterpret_cast<void*>(handle);
  return {};
}

Status deregister_buffer(ncclComm_t comm, void* handle) {
  Result<CommLock> lock = CommLock::acquire(comm, "ncclCommDeregister");
  if (!lock.ok()) return lock.status();
  if (handle == nullptr) return {};
  if (lock.value()->registrations.buffers.erase(reinterpret_cast<uintptr_t>(handle)) != 0)
    return {};
  return fail(Code::kInvalidArgument,
              "ncclCommDeregister: {} is not registered with this communicator", handle);
}

struct WindowRequest {
  ncclComm_t comm;
  void* buffer;
  size_t size;
  ncclWindow_t* out;
  int flags;
};

Status check_window(const WindowRequest& request) {
  if (request.out == nullptr)
    return fail(Code::kInvalidArgument, "ncclCommWindowRegister: win is NULL");
  if ((request.flags & ~NCCL_WIN_COLL_SYMMETRIC) != 0)
    return fail(Code::kInvalidArgument,
                "ncclCommWindowRegister: winFlags {:#x} has unknown bits; allowed: "
                "NCCL_WIN_DEFAULT, NCCL_WIN_COLL_SYMMETRIC",
                request.flags);
  if (reinterpret_cast<uintptr_t>(request.buffer) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    return fail(Code::kInvalidArgument,
                "ncclCommWindowRegister: {} is not aligned to {} bytes; ncclMemAlloc gives aligned "
                "memory",
                request.buffer, NCCL_WIN_REQUIRED_ALIGNMENT);
  return check_range("ncclCommWindowRegister", request.buffer, request.size);
}

Result<CommLock> usable(ncclComm_t comm, const char* function) {
  Result<CommLock> lock = CommLock::acquire(comm, function);
  if (!lock.ok()) return lock;
  if (Status status = check_usable(*lock.value(), function); !status.ok()) return status;
  return lock;
}

template <class Action>
Status in_turn(CommState* state, Action&& action) {
  if (!state->ordered) return action();
  const Turn turn(&state->turns);
  return action();
}

Status register_window_now(const WindowRequest& request, ncclWindow_t* made) {
  Result<CommLock> lock = usable(request.comm, "ncclCommWindowRegister");
  if (!lock.ok()) return lock.status();
  CommState& state = *lock.value();
  uint64_t window = 0;
  const Status status = in_turn(
      &state, [&] { return state.comm->register_window(request.buffer, request.size, &window); });
  if (!status.ok()) return status;
  const uintptr_t handle = new_handle(kWindowTag, request.comm, &state.registrations);
  state.registrations.windows[handle] = window;
  *made = reinterpret_cast<ncclWindow_t>(handle);
  return {};
}

Status register_window(const WindowRequest& request) {
  bool blocking = true;
  {
    Result<CommLock> lock = usable(request.comm, "ncclCommWindowRegister");
    if (!lock.ok()) return lock.status();
    blocking = lock.value()->blocking();
  }
  if (Status status = check_window(request); !status.ok()) return status;
  *request.out = nullptr;
  const auto made = std::make_shared<ncclWindow_t>(nullptr);
  return run_or_collect(
      {request.comm, [request, made] { return register_window_now(request, made.get()); },
       [out = request.out, made](bool all_succeeded) {
         if (all_succeeded) *out = *made;
       }},
      blocking);
}

Status deregister_window_now(ncclComm_t comm, uintptr_t handle) {
  Result<CommLock> lock = CommLock::acquire(comm, "ncclCommWindowDeregister");
  if (!lock.ok()) return lock.status();
  CommState& state = *lock.value();
  const auto found = state.registrations.windows.find(handle);
  if (found == state.registrations.windows.end() || state.comm == nullptr)
    return fail(Code::kInvalidArgument, "ncclCommWindowDeregister: {:#x} is not a window of {}",
                handle, state.label());
  const uint64_t window = found->second;
  state.registrations.windows.erase(found);
  return in_turn(&state, [&] { return state.comm->deregister_window(window); });
}

Status deregister_window(ncclComm_t comm, ncclWindow_t window) {
  bool blocking = true;
  {
    Result<CommLock> lock = CommLock::acquire(comm, "ncclCommWindowDeregister");
    if (!lock.ok()) return lock.status();
    blocking = lock.value()->blocking();
  }
  if (window == nullptr) return {};
  const uintptr_t handle = reinterpret_cast<uintptr_t>(window);
  return run_or_collect(
      {comm, [comm, handle] { return deregister_window_now(comm, handle); }, nullptr}, blocking);
}

}  // namespace
}  // namespace tessera::api

using tessera::api::entry;
using tessera::api::note_in_group;

TSR_API(ncclResult_t, MemAlloc, (void** ptr, size_t size)) {
  return entry([&] { return tessera::api::allocate(ptr, size); });
}
TSR_API(ncclResult_t, MemFree, (void* ptr)) {
  return entry(
      [&] { return ptr == nullptr ? tessera::Status() : tessera::host::memory_free(ptr); });
}
TSR_API(ncclResult_t, CommRegister,
        (const ncclComm_t comm, void* buff, size_t size, void** handle)) {
  return entry([&] { return tessera::api::register_buffer(comm, buff, size, handle); });
}
TSR_API(ncclResult_t, CommDeregister, (const ncclComm_t comm, void* handle)) {
  return entry([&] { return tessera::api::deregister_buffer(comm, handle); });
}
TSR_API(ncclResult_t, CommWindowRegister,
        (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags)) {
  return entry([&] {
    return note_in_group(tessera::api::register_window({comm, buff, size, win, winFlags}));
  });
}
TSR_API(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win)) {
  return entry([&] { return note_in_group(tessera::api::deregister_window(comm, win)); });
}
