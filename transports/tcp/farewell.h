// The end of connections, such that what was sent still arrives.
//
// The kernel of this host answers bytes that come for a closed socket with a reset, which drops what
// the socket still had to send: an error that explains why this rank leaves would be lost with it,
// most of all where a link was down for a moment. So each socket is kept, and what comes on it is
// read and dropped, until the peer's host has taken everything.
//
//   here    shutdown ---- reads, drops ---- all taken: close
//                   \    ^                 ^
//   peer             end |  still sending  | acknowledges
#pragma once

#include <chrono>
#include <span>

#include "transports/tcp/link.h"

namespace tessera::tcp {

inline constexpr std::chrono::seconds kLongestFarewell{2};

// Closes the links that are alive. Waits for hosts that do not answer for kLongestFarewell, all
// together. Thread safety: one thread.
void say_farewell(std::span<Link* const> links);

}  // namespace tessera::tcp
