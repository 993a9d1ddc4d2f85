// How long something that carries one thing at a time is taken: a link in a model of time. Users in
// several processes reserve it one after the other.
//
//   Reservation r = clock.advance([&](Reservation before) { return what it is with this use; });
//
// Thread safety: any number of threads in any processes. Zeroed memory is a clock that was never
// used. A process that dies leaves nothing locked: there is no lock.
//
// Invariants
//   (a) All of the state is one word, changed only by compare-and-swap: of two uses one comes
//       first, and the other is computed from what the first left. No use is lost or counted twice.
//   (b) `next` may run several times; it is pure.
// Memory orders: relaxed. A reservation is a time and says nothing about other memory; the message
// that it delays is published elsewhere (MessageRing).
#pragma once

#include <atomic>
#include <cstdint>

#include "sync/counter.h"

namespace tessera {

// `until`: when the last use ends, ns; below 2^57, nine years of uptime. `users`: how many shared it
// when that time was computed, at most 127.
struct Reservation {
  uint64_t until = 0;
  uint32_t users = 0;
};

class alignas(kCacheLine) LinkClock {
 public:
  static constexpr uint32_t kMostUsers = 127;

  // Replaces the reservation by next(it) and returns that.
  template <class Next>
  Reservation advance(const Next& next) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const Reservation after = next(unpacked(word));
      if (word_.compare_exchange_weak(word, packed(after), std::memory_order_relaxed)) {
        return after;  // (a)
      }
    }
  }

  Reservation now() const { return unpacked(word_.load(std::memory_order_relaxed)); }

 private:
  static uint64_t packed(Reservation r) { return r.until << 7 | r.users; }
  static Reservation unpacked(uint64_t word) {
    return {word >> 7, static_cast<uint32_t>(word & kMostUsers)};
  }
  std::atomic<uint64_t> word_{0};
};
static_assert(sizeof(LinkClock) == kCacheLine);

// A time that one thread writes and others read: when somebody's use of a link ends. Relaxed, as
// above: readers count with it and read nothing on the strength of it.
class TimeMark {
 public:
  void set(uint64_t time) { time_.store(time, std::memory_order_relaxed); }
  uint64_t get() const { return time_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> time_{0};
};

}  // namespace tessera
