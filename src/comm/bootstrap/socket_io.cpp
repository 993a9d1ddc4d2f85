#include "comm/bootstrap/socket_io.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transports/tcp/endpoint.h"

namespace tessera::bootstrap {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

bool gone(int error) { return error == ECONNRESET || error == EPIPE; }

// False at the deadline.
bool wait_until_ready(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd polled = {fd, events, 0};
    const int n = ::poll(&polled, 1, deadline.left_ms());
    if (n > 0) return true;
    if (deadline.passed()) return false;
  }
}

ssize_t send_some(int fd, const char* data, size_t bytes) {
  ssize_t n;
  do {
    n = ::send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n;
}

// True when everything is sent or the peer is gone.
bool advance(Outgoing& out, std::string_view body) {
  const size_t total = out.head.size() + body.size();
  while (out.sent < total) {
    const std::string_view part = out.sent < out.head.size()
                                      ? std::string_view(out.head).substr(out.sent)
                                      : body.substr(out.sent - out.head.size());
    const ssize_t n = send_some(out.fd.get(), part.data(), part.size());
    if (n < 0) return !would_block(errno);
    out.sent += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

ReadOutcome receive_some(int fd, std::string& in, size_t wanted) {
  const size_t before = in.size();
  if (before >= wanted) return ReadOutcome::kGotSome;
  in.resize(wanted);
  ssize_t n;
  do {
    n = ::recv(fd, in.data() + before, wanted - before, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  in.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (n > 0) return ReadOutcome::kGotSome;
  return n < 0 && would_block(error) ? ReadOutcome::kNothingYet : ReadOutcome::kEnded;
}

bool send_at_once(int fd, const void* data, size_t bytes) {
  return send_some(fd, static_cast<const char*>(data), bytes) == static_cast<ssize_t>(bytes);
}

void send_all(std::vector<Outgoing> outgoing, std::string_view body, Deadline deadline) {
  for (;;) {
    std::erase_if(outgoing, [&](Outgoing& out) { return advance(out, body); });
    if (outgoing.empty() || deadline.passed()) return;
    std::vector<pollfd> polled;
    for (const Outgoing& out : outgoing) polled.push_back({out.fd.get(), POLLOUT, 0});
    ::poll(polled.data(), polled.size(), deadline.left_ms());
  }
}

void close_listener(Fd& listener) {
  ::shutdown(listener.get(), SHUT_RDWR);
  listener.reset();
}

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kRefused:
      return "connection refused";
    case Outcome::kEnded:
      return "connection closed by the other side";
    case Outcome::kTimeout:
      return "no answer in time";
    case Outcome::kUnreachable:
      return "out of reach";
    case Outcome::kFailed:
      return "failed";
  }
  return "unknown";
}

Outcome connect_to_any(std::span<const SocketAddress> addresses, Deadline deadline, Fd& fd,
                       size_t& which) {
  std::vector<Fd> fds;
  std::vector<pollfd> polled;
  int error = 0;
  size_t left = 0;
  const auto ended = [&](size_t i, int reason) {
    if (error != ECONNREFUSED) error = reason;  // who refuses is there
    polled[i].fd = -1;
    --left;
  };
  for (const SocketAddress& address : addresses) {
    fds.emplace_back(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    polled.push_back({fds.back().get(), POLLOUT, 0});
    ++left;
    if (!fds.back().valid()) {
      ended(polled.size() - 1, errno);
      continue;
    }
    const int on = 1;
    ::setsockopt(fds.back().get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const bool failed = ::connect(fds.back().get(), address.get(), address.bytes) != 0;
    if (failed && errno != EINPROGRESS && errno != EINTR) ended(polled.size() - 1, errno);
  }
  while (left > 0) {
    if (::poll(polled.data(), polled.size(), deadline.left_ms()) <= 0 && deadline.passed())
      return Outcome::kTimeout;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      int reason = 0;
      socklen_t bytes = sizeof reason;
      if (::getsockopt(polled[i].fd, SOL_SOCKET, SO_ERROR, &reason, &bytes) != 0) reason = errno;
      if (reason == 0) {
        fd = std::move(fds[i]);
        which = i;
        return Outcome::kOk;
      }
      ended(i, reason);
    }
  }
  if (error == ECONNREFUSED) return Outcome::kRefused;
  if (gone(error)) return Outcome::kEnded;
  errno = error;
  return tcp::unreachable(error) ? Outcome::kUnreachable : Outcome::kFailed;
}

Outcome write_exactly(int fd, std::string_view data, Deadline deadline) {
  while (!data.empty()) {
    const ssize_t n = send_some(fd, data.data(), data.size());
    if (n >= 0) {
      data.remove_prefix(static_cast<size_t>(n));
    } else if (gone(errno)) {
      return Outcome::kEnded;
    } else if (!would_block(errno)) {
      return Outcome::kFailed;
    } else if (!wait_until_ready(fd, POLLOUT, deadline)) {
      return Outcome::kTimeout;
    }
  }
  return Outcome::kOk;
}

Outcome read_exactly(int fd, std::string& in, size_t bytes, Deadline deadline) {
  in.clear();
  while (in.size() < bytes) {
    switch (receive_some(fd, in, bytes)) {
      case ReadOutcome::kGotSome:
        break;
      case ReadOutcome::kEnded:
        return Outcome::kEnded;
      case ReadOutcome::kNothingYet:
        if (!wait_until_ready(fd, POLLIN, deadline)) return Outcome::kTimeout;
    }
  }
  return Outcome::kOk;
}

}  // namespace tessera::bootstrap
