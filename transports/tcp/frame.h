// What travels on a socket after the greeting: frames, each a header and, for a put, its bytes.
//
// Frames of a port are numbered from 1, over all its sockets. The receiver hands them over in the
// order of their numbers, as far as it matters: bytes are stored as they come, a signal takes effect
// when all frames before it are complete. Both ends have one byte order (the greeting makes sure).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::tcp {

enum class FrameKind : uint8_t {
  kPut = 1,     // value: bytes, which follow
  kSignal = 2,  // as PortSignal
  kAck = 3,     // value: all frames up to this number are complete; not numbered itself
};

struct FrameHeader {
  static constexpr uint16_t kMark = 0x7e55;  // a stream that is out of step is noticed

  uint64_t position = 0;
  uint64_t value = 0;
  uint64_t fingerprint = 0;
  uint32_t number = 0;  // the low half
  uint16_t mark = kMark;
  FrameKind kind = FrameKind::kPut;
  uint8_t signal_kind = 0;

  uint64_t bytes() const { return kind == FrameKind::kPut ? value : 0; }
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 40;

// Puts up to this size wait in the queue, to leave with what follows them in one segment.
inline constexpr size_t kSmallPut = 16 * 1024;
// So much waits at most.
inline constexpr size_t kMaxWaiting = 64 * 1024;
// Larger puts are cut in stripes where there are several sockets.
inline constexpr size_t kStripeFrom = 128 * 1024;
inline constexpr size_t kMinStripe = 64 * 1024;
inline constexpr size_t kMaxStripe = 1024 * 1024;

// One system call moves so much at most: the peer works on the first bytes while the next are
// copied, and they are still in the cache. Between two hosts of one machine this is worth a third.
inline constexpr size_t kMaxCallBytes = 256 * 1024;

}  // namespace tessera::tcp
