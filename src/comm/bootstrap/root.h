// The root: the thread that serves one rendezvous.
//
// One loop polls the listener, the connections that have not said a complete hello, and the ranks
// that have joined. A connection has five seconds for its hello; when there are too many of them
// the oldest goes first. So garbage, port scans and silent or slow strangers cost the job nothing.
#pragma once

#include <chrono>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/keyed_hash.h"
#include "base/status.h"
#include "comm/bootstrap/address.h"

namespace tessera::bootstrap {

struct Listener {
  Fd fd;
  SocketAddress address;  // with the port that the kernel chose
};

// Opens a listening socket. A port that is still in use is waited for until the deadline.
Result<Listener> listen_at(const SocketAddress& address,
                           Deadline deadline = Deadline::after(std::chrono::seconds(0)));

struct RootOptions {
  std::chrono::milliseconds idle = std::chrono::minutes(10);  // ends if no rank has come by then
  std::chrono::milliseconds hello_limit = std::chrono::seconds(5);
  std::chrono::milliseconds notice = std::chrono::seconds(10);  // first "who is missing"; doubles
  std::chrono::milliseconds linger = std::chrono::seconds(5);   // tells late comers why it failed
  size_t max_pending = 256;                                     // connections without a hello
  std::chrono::milliseconds least_age{250};  // a younger one is not dropped for a newer one
};

// Starts a detached thread that takes no signals.
Status start_root(Listener listener, const Key& secret, const RootOptions& options);

}  // namespace tessera::bootstrap
