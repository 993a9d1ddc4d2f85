// A counter that only grows, and the doorbell of those who wait for counters.
//
// Counter  one side adds, the other waits for a target (I3). Lives in memory that all parties map;
//          zero is its initial state, so that fresh memory is a valid counter. 64 bits at 10^9 adds
//          per second last 584 years.
// Doorbell one per waiting party (a rank): lets it sleep until any of its counters has moved. A
// futex, shared between processes.
//
//   adder:   counter.publish(n); doorbell.ring();
//   waiter:  if (!reached) { t = doorbell.prepare(); if (!reached) doorbell.sleep(t, timeout);
//            doorbell.cancel(); }
//
// Requires: adders' processes are registered (sync/barrier.h) before their first add.
// Thread safety: any number of adders in any processes; any number of waiters on a counter. One
// sleeper at a time per doorbell is intended; several are woken together.
// Guarantee: what an adder wrote before publish() is visible to a waiter after reached() returned
// true.
//
// Invariants relied upon
//   (a) value_ is only increased, by atomic adds, or by stores of a larger value where there is one
//       adder: targets reached stay reached.
//   (b) A sleeper raises sleepers_, then passes a barrier on every processor that runs a registered
//       process (the kernel's membarrier), then looks at the counters once more; the first two in
//       prepare().
//   (c) An adder stores its value before it looks at sleepers_, in program order; no fence of its
//       own. When the barrier of (b) hits its processor it is either before the store, and then its
//       look comes after sleepers_ was raised; or after it, and then the sleeper's last look sees
//       the value. So no wake-up is lost, and adders, who are many and hurried, do not pay for
//       sleepers, who are neither. Where the kernel has no membarrier a wake-up may be lost: sleeps
//       are then cut to kCautiousSleep.
//   (d) bells_ changes before every wake, and the kernel compares it with the value that the
//       sleeper read in prepare(): a ring between prepare() and the sleep makes the sleep return at
//       once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tessera {

inline constexpr size_t kCacheLine = 64;

class Counter {
 public:
  // Adds n; any number of adders. Release of all earlier writes.
  void publish(uint64_t n) { value_.fetch_add(n, std::memory_order_release); }

  // The same, and tells the sum so far: who adds last learns that it did.
  uint64_t publish_and_tell(uint64_t n) {
    return value_.fetch_add(n, std::memory_order_release) + n;
  }

  // The only adder raises the counter to `value`. Release; does not wait for the line to arrive.
  void publish_value(uint64_t value) { value_.store(value, std::memory_order_release); }

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
  // Wakes the sleeper, if there is one. Call after the publish it announces (c). One load of a line
  // that is rarely written. True if somebody waits in poll(): who knows how must poke it (poke()).
  bool ring() {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps program order too
    return sleepers_.load(std::memory_order_relaxed) != 0 && wake();  // (c)
  }

  // Announces a sleep (b). Look at every counter once more after it, then sleep or leave it;
  // cancel() in either case, by the same thread.
  uint32_t prepare() { return announce(1); }
  void cancel() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }  // late wakes are harmless
  // The same for a sleep in poll(), which the futex does not end.
  uint32_t prepare_poll() { return announce(kPolling); }
  void cancel_poll() { sleepers_.fetch_sub(kPolling, std::memory_order_relaxed); }

 private:
  friend void sleep_any(const struct Sleeper* sleepers, int count,
                        std::chrono::nanoseconds timeout);
  static constexpr uint32_t kPolling = 1 << 16;
  uint32_t announce(uint32_t sleepers);
  bool wake();

  std::atomic<uint32_t> bells_{0};
  std::atomic<uint32_t> sleepers_{0};  // on the futex, and kPolling for each in poll()
};
static_assert(sizeof(Doorbell) == kCacheLine);

// One doorbell and the ticket that its prepare() returned.
struct Sleeper {
  Doorbell* doorbell;
  uint32_t ticket;
};

// Most doorbells that one thread can sleep on at a time (the kernel's limit).
inline constexpr int kMaxSleepers = 128;

// Sleeps until one of the doorbells rings after its prepare(), a signal arrives or the time is
// over; spurious returns are possible. Where the kernel cannot wait for several words, or there are
// more than kMaxSleepers, sleeps on the first for kCautiousSleep at most.
void sleep_any(const Sleeper* sleepers, int count, std::chrono::nanoseconds timeout);

// Longest sleep where wake-ups may be lost.
inline constexpr std::chrono::milliseconds kCautiousSleep{1};

// Wakes a thread in poll() on this eventfd; -1: does nothing.
void poke(int event);

// For spinning: tells the core that this is a spin loop.
void pause();
// Gives the core to another runnable thread, if there is one (I10).
void yield();
// The number of the core that the calling thread runs on; -1 if nobody knows.
int current_processor();

}  // namespace tessera
