#include "common/buffer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/outcome.h"

namespace tessera::perf {

Buffer::Buffer(BufferKind kind, size_t bytes)
    : kind_(kind), bytes_(bytes), allocated_(bytes + 2 * kGuard) {
  if (kind == BufferKind::kNcclMem) {
    require(ncclMemAlloc(&base_, allocated_));
  } else {
    base_ = std::malloc(allocated_);
    if (base_ == nullptr)
      fail(kInternalError, fmt::format("malloc of {} bytes failed", allocated_));
  }
  std::memset(base_, 0, allocated_);  // pages exist before anything is timed
  data_ = static_cast<std::byte*>(base_) + kGuard;
}

Buffer::~Buffer() {
  if (base_ == nullptr) return;
  if (kind_ == BufferKind::kNcclMem) {
    require(ncclMemFree(base_));
  } else {
    std::free(base_);
  }
}

void Buffer::swap(Buffer& other) {
  std::swap(kind_, other.kind_);
  std::swap(base_, other.base_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocated_, other.allocated_);
}

void Buffer::poison(size_t used) const {
  std::memset(data_ - kGuard, static_cast<int>(kPoison), used + 2 * kGuard);
}

}  // namespace tessera::perf
