#include "device/host/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/error_text.h"
#include "base/fd.h"
#include "base/of_process.h"
#include "device/host/available_memory.h"

namespace tessera::host {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

class Registry;
Registry& registry();

// Live allocations, sorted by address. They never overlap.
class Registry {
 public:
  void add(Allocation allocation) {
    const std::unique_lock lock(mutex_);
    allocation.id = next_id_++;
    live_.insert(above(allocation.base), allocation);
  }

  // The allocation that starts at `base`, which is no longer registered then; .base == nullptr when
  // there is none.
  Allocation remove(const void* base) {
    const std::unique_lock lock(mutex_);
    const auto next = above(base);
    if (next == live_.begin() || (next - 1)->base != base) return {};
    const Allocation found = *(next - 1);
    live_.erase(next - 1);
    return found;
  }

  Allocation find(const void* pointer, size_t bytes) {
    const std::shared_lock lock(mutex_);
    const auto next = above(pointer);
    if (next == live_.begin()) return {};
    const Allocation& candidate = *(next - 1);
    const size_t offset = address(pointer) - address(candidate.base);
    const bool inside = offset < candidate.bytes && bytes <= candidate.bytes - offset;
    return inside ? candidate : Allocation{};
  }

 private:
  static uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

  // The first allocation that starts above `p`.
  std::vector<Allocation>::iterator above(const void* p) {
    return std::upper_bound(live_.begin(), live_.end(), p, [](const void* a, const Allocation& b) {
      return address(a) < address(b.base);
    });
  }

  friend Registry& registry();
  std::shared_mutex mutex_;
  std::vector<Allocation> live_;
  uint64_t next_id_ = 1;
};

Registry& registry() { return of_process<Registry, &Registry::mutex_>(); }

Status shortage(size_t bytes, uint64_t available) {
  return Status::error(Code::kSystem,
                       "cannot allocate {} bytes of shareable host memory: {} bytes are available. "
                       "Free memory, or raise the memory limit of this process's control group.",
                       bytes, available);
}

Status system_error(const char* call, size_t bytes) {
  return Status::error(Code::kSystem, "{} for {} bytes of shareable host memory failed: {}", call,
                       bytes, error_text(errno));
}

// Makes every page exist, so that no later touch can fault for want of memory. Pages that the
// kernel is willing to make huge must be touched through the mapping that asks for it; the file
// call then fills what is left.
Status commit(int fd, void* base, size_t bytes) {
  if (bytes >= kHugePage && ::madvise(base, bytes, MADV_HUGEPAGE) == 0) {
#ifdef MADV_POPULATE_WRITE
    (void)::madvise(base, bytes, MADV_POPULATE_WRITE);  // best effort: absent before Linux 5.14
#endif
  }
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno == ENOSPC || errno == ENOMEM) return shortage(bytes, available_memory());
  return system_error("fallocate", bytes);
}

}  // namespace

Result<void*> memory_allocate(size_t bytes) {
  if (bytes == 0)
    return Status::error(Code::kInvalidArgument, "cannot allocate 0 bytes of host memory");
  // The kernel would rather end a process than refuse a page, so look first.
  const uint64_t available = available_memory();
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > available || bytes > size_t{std::numeric_limits<off_t>::max()} - page)
    return shortage(bytes, available);
  const size_t size = (bytes + page - 1) / page * page;

  Fd fd(::memfd_create("tessera", MFD_CLOEXEC));
  if (!fd.valid()) return system_error("memfd_create", size);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return system_error("ftruncate", size);
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return system_error("mmap", size);
  if (Status status = commit(fd.get(), base, size); !status.ok()) {
    ::munmap(base, size);
    return status;
  }
  registry().add({base, size, fd.release(), 0});
  return base;
}

Status memory_free(void* pointer) {
  const Allocation found = registry().remove(pointer);
  if (found.base == nullptr) {
    const Allocation around = registry().find(pointer, 1);
    if (around.base != nullptr)
      return Status::error(Code::kInvalidArgument,
                           "cannot free {}: it lies inside the allocation at {}; pass that address",
                           fmt::ptr(pointer), fmt::ptr(around.base));
    return Status::error(Code::kInvalidArgument,
                         "cannot free {}: no live allocation starts there (freed twice, or not "
                         "allocated here)",
                         fmt::ptr(pointer));
  }
  ::munmap(found.base, found.bytes);
  ::close(found.fd);
  return {};
}

Allocation memory_find(const void* pointer, size_t bytes) {
  return registry().find(pointer, bytes);
}

}  // namespace tessera::host
