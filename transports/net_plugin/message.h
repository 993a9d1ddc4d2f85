// What travels through a plugin's connection: messages, each a row of frames. A frame is a header
// and, for a put, its bytes. Both ends have one byte order (the tcp greeting makes sure).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::net_plugin {

enum class FrameKind : uint8_t {
  kGreeting = 1,  // the first frame: proof that the sender was given the receiver's handle
  kPut = 2,
  kSignal = 3,  // as PortSignal
  kEnd = 4,     // nothing comes any more
};

using Token = std::array<uint64_t, 2>;

struct FrameHeader {
  static constexpr uint16_t kMark = 0x7e50;  // a message that is none of ours is noticed

  uint64_t position = 0;     // of a greeting: the token
  uint64_t value = 0;        // of a signal; of a greeting: the token
  uint64_t fingerprint = 0;  // of a signal
  uint32_t bytes = 0;        // of a put, which follow
  uint16_t mark = kMark;
  FrameKind kind = FrameKind::kPut;
  uint8_t signal_kind = 0;
};
static_assert(sizeof(FrameHeader) == 32);

// A connection has room for so many messages in flight, each so long. NCCL promises plugins that it
// has at most 32 requests open, earlier versions of it 8.
inline constexpr size_t kMessages = 8;
inline constexpr size_t kMessageBytes = 64 * 1024;

}  // namespace tessera::net_plugin
