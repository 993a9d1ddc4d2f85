#include "transports/tcp/frame_reader.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::tcp {
namespace {

bool well_formed(const FrameHeader& header) {
  if (header.mark != FrameHeader::kMark) return false;
  switch (header.kind) {
    case FrameKind::kPut:
      return header.value > 0 && header.value <= kMaxFrameBytes;
    case FrameKind::kSignal:
      return header.signal_kind <= 2;
    case FrameKind::kAck:
      return true;
  }
  return false;
}

}  // namespace

FrameReader::FrameReader() : buffer_(std::make_unique<std::byte[]>(kBufferBytes)) {}

FrameReader::Outcome FrameReader::read(int fd, FrameSink& sink, bool& moved) {
  for (int call = 0; call < kMaxCalls; ++call) {
    if (place_ != nullptr && sink.superseded(header_)) place_ = nullptr;
    size_t asked = 0;
    const ssize_t n = receive(fd, asked);
    if (n == 0) return Outcome::kEnded;
    if (n < 0)
      return errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kDrained : Outcome::kFailed;
    if (!take(static_cast<size_t>(n), sink, moved)) return Outcome::kRefused;
    if (static_cast<size_t>(n) < asked) return Outcome::kDrained;
  }
  return Outcome::kMore;
}

// One system call: what is missing of the bytes under way, then the buffer.
ssize_t FrameReader::receive(int fd, size_t& asked) {
  if (remaining_ == 0 && begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  iovec parts[2];
  size_t count = 0;
  asked = 0;
  const auto add = [&](std::byte* to, size_t bytes) {
    parts[count++] = {to, bytes};
    asked += bytes;
  };
  if (remaining_ > 0 && place_ != nullptr) add(place_, std::min(remaining_, kMaxCallBytes));
  const size_t room = kBufferBytes - end_;
  if (remaining_ > 0 && place_ == nullptr) {
    add(buffer_.get(), std::min(room, remaining_));
  } else if (remaining_ == asked) {  // the buffer takes what follows the bytes under way
    add(buffer_.get() + end_, room);
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t n;
  do {
    n = ::recvmsg(fd, &message, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n;
}

bool FrameReader::take(size_t bytes, FrameSink& sink, bool& moved) {
  if (remaining_ > 0) {
    const size_t part = std::min(bytes, remaining_);
    remaining_ -= part;
    if (place_ != nullptr) place_ += part;
    // What is discarded went to the buffer, and is of no use there.
    bytes -= part;
    if (remaining_ > 0) return true;
    place_ = nullptr;
    moved = true;
    if (!sink.arrived(header_)) return false;
  }
  end_ += bytes;
  return parse(sink, moved);
}

bool FrameReader::parse(FrameSink& sink, bool& moved) {
  while (end_ - begin_ >= sizeof header_) {
    std::memcpy(&header_, buffer_.get() + begin_, sizeof header_);
    if (!well_formed(header_)) return false;
    const size_t here = end_ - begin_ - sizeof header_;
    if (header_.kind == FrameKind::kPut && header_.value <= kWhole && here < header_.value) break;
    begin_ += sizeof header_;
    if (header_.kind == FrameKind::kPut) {
      if (!begin_put(sink, moved)) return false;
    } else {
      moved = true;
      if (!sink.arrived(header_)) return false;
    }
  }
  if (begin_ == end_) begin_ = end_ = 0;
  return true;
}

// Stores what the buffer holds of a put; the rest, if there is one, comes with the next calls.
bool FrameReader::begin_put(FrameSink& sink, bool& moved) {
  std::byte* place = nullptr;
  const FrameSink::Verdict verdict = sink.place(header_, place);
  if (verdict == FrameSink::Verdict::kRefuse) return false;
  const size_t here = std::min<size_t>(header_.value, end_ - begin_);
  if (verdict == FrameSink::Verdict::kStore) {
    std::memcpy(place, buffer_.get() + begin_, here);
    place_ = place + here;
  } else {
    place_ = nullptr;
  }
  begin_ += here;
  remaining_ = header_.value - here;
  if (remaining_ > 0) return true;
  place_ = nullptr;
  moved = true;
  return sink.arrived(header_);
}

}  // namespace tessera::tcp
