// Moving bytes over the stream sockets of the rendezvous. No signals, no blocking without a
// deadline.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "comm/bootstrap/address.h"

namespace tessera::bootstrap {

template <class T>
std::string bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

enum class ReadOutcome { kGotSome, kNothingYet, kEnded };

// Appends what has arrived, until `in` holds `wanted` bytes. Never blocks.
ReadOutcome receive_some(int fd, std::string& in, size_t wanted);

// For short messages on a fresh connection: false when they do not fit or the peer is gone.
bool send_at_once(int fd, const void* data, size_t bytes);

struct Outgoing {
  Fd fd;
  std::string head;  // own part, before the common one
  size_t sent = 0;
};

// Sends head and then `body` on each, all at the same pace, and closes. Peers that are gone or too
// slow are left.
void send_all(std::vector<Outgoing> outgoing, std::string_view body, Deadline deadline);

// Also where a forked child holds a copy: nobody connects any more.
void close_listener(Fd& listener);

enum class Outcome { kOk, kRefused, kEnded, kTimeout, kUnreachable, kFailed };
const char* to_string(Outcome outcome);

// One try of each address, all at once: the first that answers, whose place is `which`. If none
// does, what tells most; kUnreachable (nobody is there, or not yet) and kFailed: see errno.
Outcome connect_to_any(std::span<const SocketAddress> addresses, Deadline deadline, Fd& fd,
                       size_t& which);
Outcome write_exactly(int fd, std::string_view data, Deadline deadline);
Outcome read_exactly(int fd, std::string& in, size_t bytes, Deadline deadline);

}  // namespace tessera::bootstrap
