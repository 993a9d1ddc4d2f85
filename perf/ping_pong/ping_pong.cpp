// ping_pong: a message to and fro over one plain TCP connection; what a network makes possible.
//
//   ping_pong listen ADDRESS PORT                    serves one peer, then ends
//   ping_pong connect ADDRESS PORT [BYTES] [ROUNDS]  prints the median of half a round trip, in us
//
// Both sides look at their socket without a pause. IPv4.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTriesToConnect = 200;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ping_pong: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void send_all(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) fail("send");
    if (n < 0) continue;
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

// False: the peer has closed.
bool receive_all(int fd, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::recv(fd, data, bytes, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0 && errno != EAGAIN) fail("recv");
    if (n < 0) continue;
    data += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

void no_delay(int fd) {
  const int on = 1;
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("setsockopt");
}

// The peer says first how long its messages are.
void serve(const sockaddr_in& at) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("bind");
  if (::listen(listener, 1) != 0) fail("listen");
  const int fd = ::accept(listener, nullptr, nullptr);
  if (fd < 0) fail("accept");
  no_delay(fd);
  uint64_t size = 0;
  if (!receive_all(fd, reinterpret_cast<char*>(&size), sizeof size)) return;
  std::vector<char> message(size);
  while (receive_all(fd, message.data(), size)) send_all(fd, message.data(), size);
  ::close(fd);
  ::close(listener);
}

int connect_to(const sockaddr_in& at) {
  for (int tries = 0; tries < kTriesToConnect; ++tries) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
    ::close(fd);
    ::poll(nullptr, 0, 10);  // the other side may come later
  }
  fail("connect");
}

void measure(const sockaddr_in& at, uint64_t size, size_t rounds) {
  const int fd = connect_to(at);
  no_delay(fd);
  send_all(fd, reinterpret_cast<const char*>(&size), sizeof size);
  std::vector<char> message(size);
  std::vector<double> halves;
  for (size_t i = 0; i < rounds; ++i) {
    const Clock::time_point begin = Clock::now();
    send_all(fd, message.data(), size);
    if (!receive_all(fd, message.data(), size)) fail("the peer has left");
    halves.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2);
  }
  ::close(fd);
  std::nth_element(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(rounds / 2),
                   halves.end());
  std::printf("%.2f\n", halves[rounds / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  const bool known = role == "listen" || role == "connect";
  if (argc < 4 || !known || ::inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) {
    std::fprintf(stderr, "usage: ping_pong listen|connect ADDRESS PORT [BYTES] [ROUNDS]\n");
    return 2;
  }
  at.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[3])));
  if (role == "listen") {
    serve(at);
  } else {
    measure(at, argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 8,
            argc > 5 ? std::max<size_t>(1, std::strtoull(argv[5], nullptr, 10)) : 20'000);
  }
  return 0;
}
