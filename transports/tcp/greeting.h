// How two ranks make sure of each other before a socket becomes a link.
//
//   dialer -> acceptor   Hello    who calls whom, a nonce
//   acceptor -> dialer   Answer   who is here, a nonce, proof of the secret over both nonces
//   dialer -> acceptor   Proof    the same, the other way
//   dialer -> acceptor   Seat     which of the port's sockets this one shall be
//   acceptor -> dialer   Ready    all sockets of the port are there; frames may follow
//
// Every message has a fixed size; a stranger can make nobody read more. The secret is never sent.
#pragma once

#include <array>
#include <cstdint>

#include "base/keyed_hash.h"
#include "base/status.h"

namespace tessera::tcp {

using Nonce = std::array<uint8_t, 16>;
using Secret = std::array<uint8_t, 16>;

inline constexpr uint64_t kMagic = 0x3170637472737374;  // also tells byte orders apart
inline constexpr uint32_t kWireVersion = 2;
inline constexpr uint32_t kMaxSeats = 64 + 8;  // sockets of a peer, at least one per endpoint

struct Hello {
  uint64_t magic = kMagic;
  uint32_t version = kWireVersion;
  int32_t from = -1;
  int32_t to = -1;
  uint32_t unused = 0;
  Nonce nonce{};
};

struct Answer {
  uint64_t magic = kMagic;
  uint32_t version = kWireVersion;
  int32_t rank = -1;
  Nonce nonce{};
  Digest proof{};  // zero when `rank` is not who was called
};

struct Proof {
  Digest proof{};
};

struct Seat {
  uint32_t index = 0;
  uint32_t count = 0;
  uint32_t rail = 0;
  uint32_t unused = 0;
};

struct Ready {
  uint64_t magic = kMagic;
};

enum class Role : uint64_t { kDialer = 1, kAcceptor = 2 };
Digest prove(const Secret& secret, Role role, const Hello& hello, const Nonce& answer);

// kSystem.
Result<Nonce> fresh_nonce();

}  // namespace tessera::tcp
