// A rank's buffer with guard zones, so that a write outside of a call's range is seen.
//
// Layout: guard | data | guard.
// One owner; move only.
#pragma once

#include <nccl.h>

#include <cstddef>

#include "common/options.h"

namespace tessera::perf {

class Buffer {
 public:
  static constexpr size_t kGuard = 4096;  // bytes on either side
  static constexpr std::byte kPoison{0xa5};

  Buffer() = default;
  Buffer(BufferKind kind, size_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // The whole allocation: what is registered.
  void* base() const { return base_; }
  size_t allocated() const { return allocated_; }

  // Fills [data - guard, data + used + guard) with the poison.
  void poison(size_t used) const;

 private:
  void swap(Buffer& other);

  BufferKind kind_ = BufferKind::kMalloc;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t allocated_ = 0;
};

}  // namespace tessera::perf
