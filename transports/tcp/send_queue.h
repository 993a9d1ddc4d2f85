// Frames that wait to leave through one socket, in order. Holds headers and the places of bytes, not
// the bytes.
//
// Thread safety: one thread. No allocation once the queue has been as long as it gets.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "transports/tcp/frame.h"
#include "transports/tcp/zero_copy.h"

namespace tessera::tcp {

// Copies of user memory that frames need longer than the user lets them.
class OwnedBytes {
 public:
  // If the frame's bytes are of user memory: copies them, and `data` names the copy from then on.
  void take_over(const FrameHeader& header, const std::byte*& data);

 private:
  std::map<uint32_t, std::vector<std::byte>> copies_;  // by the frame's number
};

class SendQueue {
 public:
  enum class Outcome { kEmpty, kBlocked, kFailed };  // kFailed: see errno

  SendQueue() : entries_(kFirstCapacity) {}

  // `data` must stay until the frame has left, see keep_last(). `stays`: and until the kernel has
  // given back its pages.
  void push(const FrameHeader& header, const std::byte* data, bool stays);

  // Hands the kernel what it takes. `moved` becomes true if that was anything.
  Outcome send(int fd, ZeroCopy& zero_copy, bool& moved);

  // If the last frame has not left in full: its bytes that have not are copied to `shadow`, and
  // leave from there.
  void keep_last(std::byte* shadow);

  // What frames have of user memory is copied; they leave from there.
  void own_user_memory(OwnedBytes& owned);

  bool empty() const { return count_ == 0; }
  size_t waiting_bytes() const { return waiting_bytes_; }
  void clear();

 private:
  static constexpr size_t kFirstCapacity = 64;  // a power of two, as all capacities
  static constexpr size_t kMaxParts = 32;       // of one system call

  struct Entry {
    FrameHeader header;
    const std::byte* data;
    bool stays;
    size_t bytes() const { return sizeof header + header.bytes(); }
  };

  Entry& at(size_t i) { return entries_[(first_ + i) & (entries_.size() - 1)]; }
  bool may_stay(const Entry& entry, const ZeroCopy& zero_copy) const {
    return entry.stays && zero_copy.worth(entry.header.bytes());
  }
  // What one system call sends: frames, or bytes of one that are not to be copied.
  struct Batch {
    iovec parts[kMaxParts];
    size_t count = 0;
    size_t bytes = 0;
    int flags = 0;
  };
  void gather(Batch& batch, const ZeroCopy& zero_copy);
  void advance(size_t bytes);
  void grow();

  std::vector<Entry> entries_;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t sent_ = 0;  // bytes of the first entry, header included
  size_t waiting_bytes_ = 0;
};

}  // namespace tessera::tcp
