#include "transports/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "base/error_text.h"
#include "base/of_process.h"

namespace tessera::shm {
namespace {

// Mappings of this process by inode: handles of I11.
struct Attached {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Segment>> segments;
};

Attached& attached() { return of_process<Attached, &Attached::mutex>(); }

}  // namespace

Segment::~Segment() { munmap(base_, bytes_); }

std::shared_ptr<void> Segment::shared_state(std::shared_ptr<void> (*make)()) {
  const std::lock_guard lock(attached().mutex);
  if (!state_) state_ = make();
  return state_;
}

Status Segment::commit(size_t offset, size_t bytes) { return shm::commit(fd_, offset, bytes); }

Status commit(const Fd& fd, size_t offset, size_t bytes) {
  if (bytes == 0) return {};
  int error = 0;
  do {
    error = posix_fallocate(fd.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return {};
  return Status::error(Code::kSystem,
                       "shared memory: {} bytes could not be had ({}); free memory or raise the "
                       "memory limit of this job",
                       bytes, error_text(error));
}

Result<Fd> create(size_t bytes) {
  Fd fd(memfd_create("tessera", MFD_CLOEXEC));
  if (!fd.valid()) {
    return Status::error(Code::kSystem, "memfd_create: {}", error_text(errno));
  }
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::error(Code::kSystem, "shared segment of {} bytes: ftruncate: {}", bytes,
                         error_text(errno));
  }
  return fd;
}

Result<std::shared_ptr<Segment>> attach(Fd fd) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return Status::error(Code::kSystem, "shared segment: fstat: {}", error_text(errno));
  }
  Attached& all = attached();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.segments, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Segment>& known = all.segments[{info.st_dev, info.st_ino}];
  if (std::shared_ptr<Segment> segment = known.lock()) return segment;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) {
    return Status::error(Code::kSystem, "shared segment of {} bytes: mmap: {}", bytes,
                         error_text(errno));
  }
  std::shared_ptr<Segment> segment(
      new Segment(std::move(fd), static_cast<std::byte*>(base), bytes));
  known = segment;
  return segment;
}

}  // namespace tessera::shm
