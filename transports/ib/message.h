// What travels in message buffers: a header, then frames, each with its bytes padded to 8.
//
//   kPut     position, bytes follow
//   kSignal  as PortSignal
//   kAsk     wants to write `value` bytes at `position` itself; `fingerprint` names the question
//   kGrant   the answer: memory from `position` on, `fingerprint` bytes (0: refused), lies at address
//            `value`; a GrantKeys follows
//   kDone    the memory granted to question `value` will not be written any more
//
// Both ends have one byte order (the tcp greeting makes sure).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::ib {

enum class FrameKind : uint8_t { kPut = 1, kSignal, kAsk, kGrant, kDone };

struct MessageHeader {
  uint64_t taken = 0;  // messages that the sender of this one has taken in: credits
  uint32_t bytes = 0;  // of the message, this header included
  uint32_t unused = 0;
};

struct Frame {
  uint64_t position = 0;
  uint64_t value = 0;
  uint64_t fingerprint = 0;
  uint32_t bytes = 0;  // that follow
  FrameKind kind = FrameKind::kPut;
  uint8_t signal_kind = 0;
  uint16_t unused = 0;
};
static_assert(sizeof(MessageHeader) == 16 && sizeof(Frame) == 32);

inline constexpr size_t kMaxLanes = 16;  // queue pairs between two ranks

struct GrantKeys {
  uint64_t question = 0;
  std::array<uint32_t, kMaxLanes> keys{};  // by lane
};

inline constexpr size_t kMessageBytes = 4096;
// So many messages may be on their way to a receiver that has not said that it took them in.
inline constexpr uint64_t kWindow = 32;
// Messages that only return credits may exceed the window: of these there are two at most, since
// each answers half a window.
inline constexpr uint64_t kSpareBuffers = 4;
inline constexpr uint64_t kBuffers = kWindow + kSpareBuffers;
// Puts up to this size travel in messages, larger ones are written directly.
inline constexpr size_t kMostFrameBytes = kMessageBytes - sizeof(MessageHeader) - sizeof(Frame);

constexpr size_t padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

}  // namespace tessera::ib
