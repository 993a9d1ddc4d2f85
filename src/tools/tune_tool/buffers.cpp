#include "tools/tune_tool/buffers.h"

#include <cstring>

#include "device/host/memory.h"

namespace tessera::tune {

Status Buffer::reserve(size_t bytes) {
  if (bytes <= bytes_) return {};
  if (shareable_) {
    Result<void*> memory = host::memory_allocate(bytes);
    if (!memory.ok()) return memory.status();
    mapped_.reset(memory.value());
    data_ = memory.value();
  } else {
    plain_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    data_ = plain_.get();
  }
  std::memset(data_, 0, bytes);
  bytes_ = bytes;
  return {};
}

void Buffer::Free::operator()(void* memory) const { static_cast<void>(host::memory_free(memory)); }

}  // namespace tessera::tune
