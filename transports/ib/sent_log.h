// What a port has posted to its queue pairs and what is not known to have arrived, oldest first.
//
// Thread safety: one thread. No allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/ib/registrations.h"

namespace tessera::ib {

struct Sent {
  uint64_t message = 0;  // its number, from 1; 0: a write
  uint64_t position = 0;
  const std::byte* data = nullptr;  // of a write; null: the caller has taken it back
  size_t bytes = 0;
  Registration* registration = nullptr;
  bool done = false;
};

class SentLog {
 public:
  static constexpr uint32_t kMost = 128;  // requests in a queue pair

  bool full() const { return last_ - first_ == kMost; }
  bool empty() const { return last_ == first_; }
  uint64_t first() const { return first_; }
  uint64_t last() const { return last_; }  // one behind the youngest
  Sent& at(uint64_t i) { return ring_[i % kMost]; }
  // Its place, for at(). Requires room.
  uint32_t push(const Sent& sent) {
    at(last_) = sent;
    return static_cast<uint32_t>(last_++ % kMost);
  }
  void drop_done() {
    while (!empty() && at(first_).done) ++first_;
  }
  void clear() { first_ = last_; }

 private:
  std::array<Sent, kMost> ring_;
  uint64_t first_ = 0, last_ = 0;
};

}  // namespace tessera::ib
