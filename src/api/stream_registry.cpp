// The streams that users made: numbers to objects, and the entry points around them.
#include <tessera/stream.h>

#include <mutex>
#include <new>
#include <unordered_map>

#include "api/errors.h"
#include "api/export.h"
#include "api/handles.h"
#include "api/streams.h"

namespace tessera::api {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Stream>> streams;
  uint64_t next = 1;
  uint64_t first_after_fork = 1;
};

// Never destroyed: streams may be in use while the process ends.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

constexpr uint64_t kNumberMask = (uint64_t{1} << kHandleTagShift) - 1;

uint64_t number_of(cudaStream_t stream) {
  return reinterpret_cast<uintptr_t>(stream) & kNumberMask;
}

Status no_such_stream(cudaStream_t stream) {
  return fail(Code::kInvalidArgument,
              "stream {} is not one that tsrStreamCreate returned, or was destroyed",
              static_cast<const void*>(stream));
}

Result<std::shared_ptr<Stream>> look_up(cudaStream_t stream, bool remove) {
  if (!is_stream_handle(stream)) return no_such_stream(stream);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (number_of(stream) < all.first_after_fork)
    return fail(Code::kInvalidUsage,
                "stream {} was created before fork; its thread does not exist in this process",
                static_cast<const void*>(stream));
  const auto found = all.streams.find(number_of(stream));
  if (found == all.streams.end()) return no_such_stream(stream);
  std::shared_ptr<Stream> result = found->second;
  if (remove) all.streams.erase(found);
  return result;
}

Status create(cudaStream_t* out) {
  if (out == nullptr) return fail(Code::kInvalidArgument, "tsrStreamCreate: stream is NULL");
  watch_forks();
  Result<std::shared_ptr<Stream>> stream = Stream::start();
  if (!stream.ok()) return stream.status();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const uint64_t number = all.next++;
  all.streams.emplace(number, std::move(stream).value());
  *out = reinterpret_cast<cudaStream_t>(kStreamTag << kHandleTagShift | number);
  return {};
}

}  // namespace

bool is_stream_handle(cudaStream_t stream) {
  return reinterpret_cast<uintptr_t>(stream) >> kHandleTagShift == kStreamTag;
}

Result<std::shared_ptr<Stream>> find_stream(cudaStream_t stream) { return look_up(stream, false); }

void forget_streams_after_fork() {
  Registry& all = registry();
  // The lock may be held by a thread that does not exist here, and the objects would wait for their
  // threads: both are left behind.
  new (&all.mutex) std::mutex;
  new (&all.streams) decltype(all.streams);
  all.first_after_fork = all.next;
}

}  // namespace tessera::api

using tessera::Code;
using tessera::Result;
using tessera::Status;
using tessera::api::Stream;

extern "C" TSR_VISIBLE ncclResult_t tsrStreamCreate(tsrStream_t* stream) {
  return tessera::api::entry([&] { return tessera::api::create(stream); });
}

extern "C" TSR_VISIBLE ncclResult_t tsrStreamDestroy(tsrStream_t stream) {
  return tessera::api::entry([&] {
    // Dropping the last reference waits for the queue and ends the thread.
    return tessera::api::look_up(stream, true).status();
  });
}

extern "C" TSR_VISIBLE ncclResult_t tsrStreamSynchronize(tsrStream_t stream) {
  return tessera::api::entry([&]() -> Status {
    Result<std::shared_ptr<Stream>> found = tessera::api::find_stream(stream);
    if (!found.ok()) return found.status();
    found.value()->synchronize();
    return found.value()->take_error();
  });
}

extern "C" TSR_VISIBLE ncclResult_t tsrStreamQuery(tsrStream_t stream) {
  return tessera::api::entry([&]() -> Status {
    Result<std::shared_ptr<Stream>> found = tessera::api::find_stream(stream);
    if (!found.ok()) return found.status();
    if (!found.value()->idle()) return tessera::api::in_progress();
    return found.value()->take_error();
  });
}
