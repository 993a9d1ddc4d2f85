// A value in shared memory that is written at most once, by whoever comes first, and read by all: a
// communicator's first error.
//
// Thread safety: any number of writers and readers in any processes. Zeroed memory is an empty
// record. A writer that dies while it writes leaves the record claimed for ever: readers then see
// claimed() but not get().
//
// Invariants: (a) state_ goes kEmpty -> kClaimed -> kWritten, by one thread that won the exchange;
// (b) value_ is written only between the two, and read only after kWritten was acquired.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace tessera {

template <class T>
class OnceRecord {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // False if somebody else was first.
  bool set(const T& value) {
    uint32_t expected = kEmpty;
    // acq_rel: who sees the claim sees what the claimer had done before. Failure reads nothing.
    if (!state_.compare_exchange_strong(expected, kClaimed, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return false;
    }
    value_ = value;
    state_.store(kWritten, std::memory_order_release);  // (b)
    return true;
  }

  // True once set() has begun; a look costs one load of a line that is not written otherwise.
  bool claimed() const { return state_.load(std::memory_order_acquire) != kEmpty; }

  // nullptr until set() has finished. Acquire (b).
  const T* get() const {
    return state_.load(std::memory_order_acquire) == kWritten ? &value_ : nullptr;
  }

 private:
  enum : uint32_t { kEmpty = 0, kClaimed = 1, kWritten = 2 };
  std::atomic<uint32_t> state_{0};
  T value_;
};

}  // namespace tessera
