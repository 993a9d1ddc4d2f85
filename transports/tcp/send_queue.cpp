#include "transports/tcp/send_queue.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::tcp {

void SendQueue::push(const FrameHeader& header, const std::byte* data) {
  if (count_ == entries_.size()) grow();
  Entry& entry = at(count_++);
  entry = {header, data};
  waiting_bytes_ += entry.bytes();
}

void SendQueue::grow() {
  std::vector<Entry> larger(entries_.size() * 2);
  for (size_t i = 0; i < count_; ++i) larger[i] = at(i);
  entries_.swap(larger);
  first_ = 0;
}

void SendQueue::clear() { first_ = count_ = sent_ = waiting_bytes_ = 0; }

size_t SendQueue::gather(iovec* parts, size_t& total) {
  size_t n = 0;
  size_t skip = sent_;
  total = 0;
  const auto add = [&](const void* from, size_t bytes) {
    bytes = std::min(bytes, kMaxCallBytes - total);
    parts[n++] = {const_cast<void*>(from), bytes};
    total += bytes;
  };
  for (size_t i = 0; i < count_ && n + 2 <= kMaxParts && total < kMaxCallBytes; ++i) {
    const Entry& entry = at(i);
    constexpr size_t kHeader = sizeof entry.header;
    if (skip < kHeader) {
      add(reinterpret_cast<const std::byte*>(&entry.header) + skip, kHeader - skip);
      skip = kHeader;
    }
    if (skip < entry.bytes()) add(entry.data + (skip - kHeader), entry.bytes() - skip);
    skip = 0;
  }
  return n;
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

SendQueue::Outcome SendQueue::send(int fd, bool& moved) {
  while (count_ > 0) {
    iovec parts[kMaxParts];
    size_t total = 0;
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = gather(parts, total);
    const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kBlocked : Outcome::kFailed;
    }
    moved = true;
    advance(static_cast<size_t>(n));
    if (static_cast<size_t>(n) < total) return Outcome::kBlocked;
  }
  return Outcome::kEmpty;
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
