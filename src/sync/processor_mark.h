// The processor that a rank was last seen on: a hint for those who wait for it. Zeroed memory says
// that nobody knows.
//
// Thread safety: one writer, any number of readers in any processes. A hint only: relaxed, since
// nothing is read on the strength of it; a reader that sees an old value waits a little worse.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

class ProcessorMark {
 public:
  // Stores only what is new, so that the line stays with its readers.
  void set(int processor) {
    if (!is(processor)) value_.store(processor + 1, std::memory_order_relaxed);
  }
  bool is(int processor) const { return value_.load(std::memory_order_relaxed) == processor + 1; }

 private:
  std::atomic<int32_t> value_{0};
};

}  // namespace tessera
