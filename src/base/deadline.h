// A point in time by which a wait must end (I6: no wait without one). Monotonic clock; copyable
// value.
#pragma once

#include <chrono>

namespace tessera {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(std::chrono::nanoseconds duration) {
    return Deadline(Clock::now() + duration);
  }

  bool passed() const { return Clock::now() >= at_; }

  // Time left, never negative.
  std::chrono::nanoseconds left() const {
    const auto left = at_ - Clock::now();
    return left.count() > 0 ? std::chrono::nanoseconds(left) : std::chrono::nanoseconds(0);
  }

  // Time left in milliseconds, rounded up, as poll() wants it.
  int left_ms() const { return static_cast<int>((left().count() + 999'999) / 1'000'000); }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace tessera
