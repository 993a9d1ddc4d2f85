// A flag that is raised once and never lowered: abort, revoke, "this rank has left". May lie in
// shared memory; zeroed memory is a lowered flag.
// Thread safety: any thread, any process. raise() orders all earlier writes before it; raised()
// acquires them.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

class Flag {
 public:
  void raise() { value_.store(1, std::memory_order_release); }
  bool raised() const { return value_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<uint32_t> value_{0};
};

}  // namespace tessera
