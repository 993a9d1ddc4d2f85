// A count that stops at a limit: how often something was reported that may be reported only so
// often. The limit comes with each add, and grows; the count does too, and never falls (I3).
//
// Thread safety: any number of adders. Zeroed memory is an empty tally.
// Guarantee: what an adder wrote before add() is visible to every adder that got a larger count,
// so that who reports last may publish for all.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

class Tally {
 public:
  // Adds one and returns the new count; 0 when the count is at the limit already: nothing is added.
  uint64_t add(uint64_t limit) {
    uint64_t now = value_.load(std::memory_order_relaxed);
    do {
      if (now >= limit) return 0;
      // acquire: of the adders before; release: to the adders after
    } while (!value_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
    return now + 1;
  }

  // For messages.
  uint64_t value() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace tessera
