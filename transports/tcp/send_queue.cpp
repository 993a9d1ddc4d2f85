#include "transports/tcp/send_queue.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/port.h"

namespace tessera::tcp {

void SendQueue::push(const FrameHeader& header, const std::byte* data, bool stays) {
  if (count_ == entries_.size()) grow();
  Entry& entry = at(count_++);
  entry = {header, data, stays};
  waiting_bytes_ += entry.bytes();
}

void SendQueue::grow() {
  std::vector<Entry> larger(entries_.size() * 2);
  for (size_t i = 0; i < count_; ++i) larger[i] = at(i);
  entries_.swap(larger);
  first_ = 0;
}

void SendQueue::clear() { first_ = count_ = sent_ = waiting_bytes_ = 0; }

// Bytes that are not to be copied travel alone: headers are copied always.
void SendQueue::gather(Batch& batch, const ZeroCopy& zero_copy) {
  size_t skip = sent_;
  const auto add = [&](const void* from, size_t bytes) {
    bytes = std::min(bytes, kMaxCallBytes - batch.bytes);
    batch.parts[batch.count++] = {const_cast<void*>(from), bytes};
    batch.bytes += bytes;
  };
  for (size_t i = 0; i < count_ && batch.count + 2 <= kMaxParts && batch.bytes < kMaxCallBytes;
       ++i) {
    const Entry& entry = at(i);
    constexpr size_t kHeader = sizeof entry.header;
    if (skip < kHeader) {
      add(reinterpret_cast<const std::byte*>(&entry.header) + skip, kHeader - skip);
      skip = kHeader;
    }
    const bool uncopied = may_stay(entry, zero_copy);
    if (uncopied && batch.count > 0) {
      batch.flags = MSG_MORE;
      return;
    }
    if (skip < entry.bytes()) add(entry.data + (skip - kHeader), entry.bytes() - skip);
    if (uncopied) {
      batch.flags = MSG_ZEROCOPY;
      return;
    }
    skip = 0;
  }
}

void SendQueue::advance(size_t bytes) {
  waiting_bytes_ -= bytes;
  sent_ += bytes;
  while (count_ > 0 && sent_ >= at(0).bytes()) {
    sent_ -= at(0).bytes();
    first_ = (first_ + 1) & (entries_.size() - 1);
    --count_;
  }
}

SendQueue::Outcome SendQueue::send(int fd, ZeroCopy& zero_copy, bool& moved) {
  while (count_ > 0) {
    Batch batch;
    gather(batch, zero_copy);
    msghdr message = {};
    message.msg_iov = batch.parts;
    message.msg_iovlen = batch.count;
    const ssize_t n = ::sendmsg(fd, &message, batch.flags | MSG_NOSIGNAL | MSG_DONTWAIT);
    const bool uncopied = batch.flags == MSG_ZEROCOPY;
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == ENOBUFS && uncopied) {
        zero_copy.give_up();
        continue;
      }
      return errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kBlocked : Outcome::kFailed;
    }
    if (uncopied) zero_copy.sent();
    moved = true;
    advance(static_cast<size_t>(n));
    if (static_cast<size_t>(n) < batch.bytes) return Outcome::kBlocked;
  }
  return Outcome::kEmpty;
}

void SendQueue::own_user_memory(OwnedBytes& owned) {
  for (size_t i = 0; i < count_; ++i) {
    Entry& entry = at(i);
    owned.take_over(entry.header, entry.data);
  }
}

void OwnedBytes::take_over(const FrameHeader& header, const std::byte*& data) {
  if (header.kind != FrameKind::kPut || header.position < kUserMemory) return;
  const auto [at, fresh] = copies_.try_emplace(header.number);
  if (fresh) at->second.assign(data, data + header.bytes());
  data = at->second.data();
}

void SendQueue::keep_last(std::byte* shadow) {
  if (count_ == 0) return;
  Entry& entry = at(count_ - 1);
  const size_t gone = count_ == 1 && sent_ > sizeof entry.header ? sent_ - sizeof entry.header : 0;
  if (entry.data != shadow)
    std::memcpy(shadow + gone, entry.data + gone, entry.header.bytes() - gone);
  entry.data = shadow;
}

}  // namespace tessera::tcp
