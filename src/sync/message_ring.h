// A queue of small messages from one thread to one other, in shared memory.
//
// Thread safety: one producer, one consumer, in any processes. Zeroed memory is an empty ring.
// Guarantee: what the producer wrote before push() is visible to the consumer once front() has
// returned that message.
// Waiting: nobody waits here. The producer rings the consumer's doorbell after push(); a producer
// that found the ring full sleeps on its own doorbell and is rung when pop() says so.
//
// Invariants
//   (a) pushed_ is written by the producer only, popped_ by the consumer only; both only grow, and
//       popped_ <= pushed_ <= popped_ + kEntries.
//   (b) Entry i % kEntries is written before pushed_ becomes i + 1 (release) and read after that was
//       seen (acquire); it is written again only after popped_ > i was seen (acquire), which the
//       consumer stores after its last look at the entry (release).
//   (c) pop() stores popped_ before it looks at pushed_. A producer that goes to sleep has found the
//       ring full, then passed the doorbell's barrier, then found it full again. By the barrier
//       either its second look sees the new popped_, or the consumer's look sees that the ring was
//       full, and rings: counter.h (c).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "sync/counter.h"

namespace tessera {

template <class T, uint64_t kEntries>
class MessageRing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // By the producer. False: the ring is full.
  bool push(const T& message) {
    const uint64_t at = pushed_.load(std::memory_order_relaxed);  // (a) its own
    if (at - popped_.load(std::memory_order_acquire) == kEntries) return false;
    entries_[at % kEntries] = message;
    pushed_.store(at + 1, std::memory_order_release);  // (b)
    return true;
  }

  // By the consumer: the oldest message, which stays until pop(); nullptr: none.
  const T* front() const {
    const uint64_t at = popped_.load(std::memory_order_relaxed);  // (a) its own
    return pushed_.load(std::memory_order_acquire) == at ? nullptr : &entries_[at % kEntries];
  }

  // By the consumer, after front() returned a message: removes it. True: the ring was full, and the
  // producer may wait for this.
  bool pop() {
    const uint64_t at = popped_.load(std::memory_order_relaxed);
    popped_.store(at + 1, std::memory_order_release);     // (b)
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps the order of (c)
    return pushed_.load(std::memory_order_relaxed) - at == kEntries;
  }

 private:
  alignas(kCacheLine) std::atomic<uint64_t> pushed_{0};
  alignas(kCacheLine) std::atomic<uint64_t> popped_{0};
  alignas(kCacheLine) std::array<T, kEntries> entries_{};
};

}  // namespace tessera
