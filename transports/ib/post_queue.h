// Puts and signals that were posted to a port and have not become requests, in order.
//
// Thread safety: one thread. No allocation once the queue has been as long as it gets.
#pragma once

#include <cstddef>
#include <vector>

#include "transports/ib/message.h"
#include "transports/ib/registrations.h"

namespace tessera::ib {

// Memory of the peer that may be written directly.
struct Grant {
  uint64_t bytes = 0;
  uint64_t address = 0;
  std::array<uint32_t, kMaxLanes> keys{};
};

struct Post {
  Frame frame;  // of a put, `value` is its bytes
  const std::byte* data = nullptr;
  uint64_t sent = 0;      // bytes of a put that have become requests
  uint64_t question = 0;  // 0: nothing is asked
  bool by_messages = false;
  bool dropped = false;  // its bytes were taken back
  Grant grant;           // of user memory
  Registration* registration = nullptr;
};

class PostQueue {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  Post& at(size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  Post& push(const Post& post) {
    if (count_ == ring_.size()) grow();
    return at(count_++) = post;
  }
  void pop() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    std::vector<Post> larger(ring_.size() * 2);
    for (size_t i = 0; i < count_; ++i) larger[i] = at(i);
    ring_ = std::move(larger);
    first_ = 0;
  }
  std::vector<Post> ring_ = std::vector<Post>(32);  // a power of two
  size_t first_ = 0, count_ = 0;
};

}  // namespace tessera::ib
