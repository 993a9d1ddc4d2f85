#include "transports/tcp/farewell.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "base/deadline.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::milliseconds kNap{1};  // nothing wakes for an acknowledgement

void drop_unread(int fd) {
  std::byte unread[16384];
  for (;;) {
    const ssize_t n = ::recv(fd, unread, sizeof unread, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR)) return;
  }
}

// Also by a reset, which recv() does not tell once the peer has ended its side.
bool broken(int fd) {
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_state == TCP_CLOSE;
}

// The peer's host has acknowledged all bytes. That it has ended its side says nothing of them. The
// end of this side counts as a byte, whose acknowledgement may be delayed and is not needed.
bool all_taken(int fd) {
  int untaken = 0;
  return ::ioctl(fd, SIOCOUTQ, &untaken) != 0 || untaken <= 1;
}

}  // namespace

void say_farewell(std::span<Link* const> links) {
  std::vector<int> open;
  for (const Link* link : links) {
    if (!link->alive) continue;
    ::shutdown(link->fd.get(), SHUT_WR);
    open.push_back(link->fd.get());
  }
  const Deadline deadline = Deadline::after(kLongestFarewell);
  for (;;) {
    std::erase_if(open, [](int fd) {
      drop_unread(fd);
      return all_taken(fd) || broken(fd);
    });
    if (open.empty() || deadline.passed()) break;
    std::this_thread::sleep_for(kNap);
  }
  for (Link* link : links) link->fd.reset();
}

}  // namespace tessera::tcp
