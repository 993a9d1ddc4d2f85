// What timed calls read and write.
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"

namespace tessera::tune {

// Memory that peers can map, or that they cannot.
class Buffer {
 public:
  explicit Buffer(bool shareable) : shareable_(shareable) {}
  // Makes room for so many bytes at least; every page is there then.
  Status reserve(size_t bytes);
  void* data() const { return data_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  bool shareable_;
  std::unique_ptr<void, Free> mapped_;
  std::unique_ptr<std::byte[]> plain_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

struct Buffers {
  explicit Buffers(bool shareable) : input(shareable), output(shareable) {}
  Buffer input, output;
};

}  // namespace tessera::tune
