// A counter that only grows, and the doorbell of those who wait for counters.
//
// Counter  one side adds, the other waits for a target (I3). Lives in memory that all parties map; zero is its initial state, so that
//          fresh memory is a valid counter. 64 bits at 10^9 adds per second last 584 years.
// Doorbell one per waiting party (a rank): lets it sleep until any of its counters has moved. A futex, shared between processes.
//
//   adder:   counter.publish(n); doorbell.ring();
//   waiter:  if (!reached) { t = doorbell.prepare(); if (!reached) doorbell.sleep(t, timeout); doorbell.cancel(); }
//
// Thread safety: any number of adders in any processes; any number of waiters on a counter. One sleeper at a time per doorbell is
// intended; several are woken together.
// Guarantee: what an adder wrote before publish() is visible to a waiter after reached() returned true.
//
// Invariants relied upon
//   (a) value_ is only increased, by atomic adds: targets reached stay reached.
//   (b) A sleeper raises sleepers_ and passes a seq_cst fence (both in prepare()) before its last look at the counters, so that any acquire
//       look will do.
//   (c) An adder's add and its look at sleepers_ are seq_cst, in this order. If the last look of (b) misses the add, the fence precedes the
//       add in the total order, so the adder sees the raised sleepers_: no wake-up is lost.
//   (d) bells_ changes before every wake, and the kernel compares it with the value that the sleeper read in prepare():
//       a ring between prepare() and the sleep makes the sleep return at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tessera {

inline constexpr size_t kCacheLine = 64;

class Counter {
 public:
  // Adds n; any number of adders. Release of all earlier writes; seq_cst for (c).
  void publish(uint64_t n) { value_.fetch_add(n, std::memory_order_seq_cst); }

  // Acquire: pairs with the release of every add that the value includes.
  bool reached(uint64_t target) const { return value_.load(std::memory_order_acquire) >= target; }

  // For messages, and the last look of a sleeper (b).
  uint64_t value() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> value_{0};
};
static_assert(sizeof(Counter) == 8);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A counter with a cache line of its own.
struct alignas(kCacheLine) PaddedCounter {
  Counter counter;
};
static_assert(sizeof(PaddedCounter) == kCacheLine);

class alignas(kCacheLine) Doorbell {
 public:
  // Wakes the sleeper, if there is one. Call after the publish it announces (c). One load of a line that is rarely written.
  void ring() {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake();
  }

  // Announces a sleep (b). Look at every counter once more after it, then sleep() or leave it; cancel() in either case.
  uint32_t prepare() {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t ticket = bells_.load(std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // (b)
    return ticket;
  }
  void cancel() { sleepers_.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  friend void sleep_any(const struct Sleeper* sleepers, int count, std::chrono::nanoseconds timeout);
  void wake();

  std::atomic<uint32_t> bells_{0};
  std::atomic<uint32_t> sleepers_{0};
};
static_assert(sizeof(Doorbell) == kCacheLine);

// One doorbell and the ticket that its prepare() returned.
struct Sleeper {
  Doorbell* doorbell;
  uint32_t ticket;
};

// Most doorbells that one thread can sleep on at a time (the kernel's limit).
inline constexpr int kMaxSleepers = 128;

// Sleeps until one of the doorbells rings after its prepare(), a signal arrives or the time is over; spurious returns are possible.
// Where the kernel cannot wait for several words, or there are more than kMaxSleepers, sleeps on the first for a millisecond at most.
void sleep_any(const Sleeper* sleepers, int count, std::chrono::nanoseconds timeout);

// For spinning: tells the core that this is a spin loop.
void pause();
// Gives the core to another runnable thread, if there is one (I10).
void yield();

}  // namespace tessera
