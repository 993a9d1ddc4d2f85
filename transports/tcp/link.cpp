#include "transports/tcp/link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace tessera::tcp {
namespace {

constexpr int kMaxSilence = 10;  // seconds

}  // namespace

void Link::renew(Fd socket, std::string new_route) {
  fd = std::move(socket);
  route = std::move(new_route);
  reader = FrameReader();
  alive = true;
  silent_seconds = 0;
  failure.clear();
}

void prepare(Link& link, std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  link.patience = static_cast<int>(std::clamp<int64_t>(seconds.count(), 1, kMaxSilence));
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(link.fd.get(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  link.zero_copy.enable(link.fd.get());
  // An idle connection to a host that has vanished; the engine watches the others.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, link.patience);
}

}  // namespace tessera::tcp
