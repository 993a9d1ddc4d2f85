// The messages between a rank and the root, and how they are packed.
//
//   root -> rank   Challenge: a fresh nonce
//   rank -> root   hello      who the rank is and what it expects
//   root -> rank   welcome    all members and the secret of the communicator; or
//                  rejection  why not
//
// Every message after the challenge is a frame: a header, then the body. Its tag is a keyed hash,
// under the secret of the id, of nonce, header and body, so that neither side believes a stranger
// and the secret itself is never sent. The layout of Challenge, FrameHeader and rejections, and the
// first eight bytes of a hello, are the same in every version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"
#include "base/status.h"
#include "comm/bootstrap.h"

namespace tessera::bootstrap {

inline constexpr uint64_t kWireMagic = 0x3172697761737374;
inline constexpr uint32_t kMaxHelloBytes = 64 * 1024;
inline constexpr uint32_t kMaxReplyBytes = 64 * 1024 * 1024;
inline constexpr size_t kMaxReasonBytes = 4096;

using Nonce = std::array<uint8_t, 16>;

struct Challenge {
  uint64_t magic = kWireMagic;
  Nonce nonce{};
};

enum class MessageKind : uint32_t { kHello = 1, kWelcome = 2, kRejection = 3 };

struct FrameHeader {
  uint64_t magic;
  uint32_t version;
  MessageKind kind;
  uint64_t body_bytes;
  Digest tag;
};

FrameHeader seal(const Key& secret, const Nonce& nonce, MessageKind kind, std::string_view body);
bool genuine(const Key& secret, const Nonce& nonce, const FrameHeader& header,
             std::string_view body);

struct Hello {
  int32_t rank = 0;
  int32_t ranks = 0;
  uint32_t wait_ms = 0;  // the rank gives up after that
  Member member;
  // Config::shared_settings() and host_settings()
  Config::Texts settings, host_settings;
};

std::string pack(const Hello& hello);
Result<Hello> unpack_hello(std::string_view body);
// Rank and ranks of a hello of any version.
Result<std::pair<int32_t, int32_t>> unpack_numbers(std::string_view body);

struct Welcome {
  Key secret{};  // of the communicator
  std::vector<Member> members;
};

std::string pack(const Welcome& welcome);
Result<Welcome> unpack_welcome(std::string_view body);

std::string pack_rejection(const Status& reason);
// The reason itself, or kInternal for a malformed body.
Status unpack_rejection(std::string_view body);

}  // namespace tessera::bootstrap
