#include "transports/tcp/contact.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error_text.h"

namespace tessera::tcp {
namespace {

Fd open_socket(int family) {
  return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Endpoint name_of(int fd, decltype(&::getpeername) which) {
  Endpoint endpoint;
  SocketAddress address;
  address.bytes = sizeof address.storage;
  if (which(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) == 0)
    set_address(endpoint, address.get());
  return endpoint;
}

}  // namespace

Endpoint Contact::local() const { return name_of(fd(), ::getsockname); }

Endpoint Contact::remote() const { return name_of(fd(), ::getpeername); }

void Contact::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  fd_.reset();
}

bool Contact::receive_bytes(void* message, size_t bytes) {
  static_assert(sizeof partial_ >= sizeof(Hello) && sizeof partial_ >= sizeof(Answer));
  while (received_ < bytes) {
    const ssize_t n = ::recv(fd(), partial_ + received_, bytes - received_, MSG_DONTWAIT);
    if (n > 0) {
      received_ += static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    fail(n == 0 ? "closed by the other side" : error_text(errno));
    return false;
  }
  std::memcpy(message, partial_, bytes);
  received_ = 0;
  return true;
}

// A fresh socket has room for the few bytes of a greeting.
bool Contact::send_bytes(const void* message, size_t bytes) {
  if (::send(fd(), message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes))
    return true;
  fail(error_text(errno));
  return false;
}

Call::Call(const Self& self, int peer, const Way& way)
    : Contact(open_socket(way.to.family)), self_(self), to_(way.to) {
  if (fd() < 0) {
    fail_to_connect(errno);
    return;
  }
  hello_.from = self.rank;
  hello_.to = peer;
  const int on = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (way.from) {
    Endpoint any_port = *way.from;
    any_port.port = 0;
    const SocketAddress local = socket_address(any_port);
    if (::bind(fd(), local.get(), local.bytes) != 0) {
      fail_to_connect(errno);
      return;
    }
  }
  const SocketAddress address = socket_address(way.to);
  if (::connect(fd(), address.get(), address.bytes) != 0 && errno != EINPROGRESS)
    fail_to_connect(errno);
}

void Call::fail_to_connect(int error) {
  unreachable_ = tcp::unreachable(error);
  fail(error_text(error));
}

void Call::serve() {
  if (failed()) return;
  if (state_ == State::kConnecting) return say_hello();
  if (state_ == State::kAnswer) return check_answer();
  if (state_ == State::kSeated) {
    Ready ready;
    if (!receive(ready)) return;
    if (ready.magic != kMagic) return fail("answers with garbage");
    state_ = State::kReady;
  } else {
    // Nothing is due: the other side has closed, or talks out of turn.
    uint8_t byte;
    if (receive(byte)) fail("talks out of turn");
  }
}

void Call::say_hello() {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return fail_to_connect(error);
  const Result<Nonce> nonce = fresh_nonce();
  if (!nonce.ok()) return fail(nonce.status().message());
  hello_.nonce = nonce.value();
  if (send(hello_)) state_ = State::kAnswer;
}

void Call::check_answer() {
  Answer answer;
  if (!receive(answer)) return;
  hopeless_ = true;
  if (answer.magic != kMagic) return fail("something else than tessera answers there");
  if (answer.version != kWireVersion) {
    return fail(fmt::format("speaks version {} of the protocol, this rank version {}",
                            answer.version, kWireVersion));
  }
  if (answer.rank != hello_.to) return fail(fmt::format("rank {} answers there", answer.rank));
  if (!equal_in_constant_time(answer.proof,
                              prove(self_.secret, Role::kAcceptor, hello_, answer.nonce))) {
    return fail("does not know the secret of this communicator");
  }
  hopeless_ = false;
  if (send(Proof{prove(self_.secret, Role::kDialer, hello_, answer.nonce)}))
    state_ = State::kVerified;
}

std::string Call::route() const {
  return fmt::format("{} to {}", address_text(local()), to_text(to_));
}

void Call::take(const Seat& seat) {
  if (send(seat)) state_ = State::kSeated;
}

std::string Guest::route() const {
  return fmt::format("{} to {}", address_text(local()), address_text(remote()));
}

void Guest::serve() {
  if (failed()) return;
  if (state_ == State::kHello) {
    if (!receive(hello_) || !answer()) return;
    state_ = State::kProof;
  }
  if (state_ == State::kProof) {
    Proof proof;
    if (!receive(proof)) return;
    if (!equal_in_constant_time(proof.proof,
                                prove(self_.secret, Role::kDialer, hello_, answer_.nonce))) {
      return fail("does not know the secret of this communicator");
    }
    state_ = State::kSeat;
  }
  if (state_ == State::kSeat) {
    if (!receive(seat_)) return;
    if (seat_.count == 0 || seat_.count > kMaxSeats || seat_.index >= seat_.count)
      return fail("asks for an impossible seat");
    state_ = State::kSeated;
  }
}

bool Guest::waits() const {
  uint8_t byte;
  return ::recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

// Who calls somebody else is told who is here, and gets no proof.
bool Guest::answer() {
  if (hello_.magic != kMagic) {
    fail("is not tessera, or has another byte order");
    return false;
  }
  answer_.rank = self_.rank;
  const Result<Nonce> nonce = fresh_nonce();
  if (!nonce.ok()) {
    fail(nonce.status().message());
    return false;
  }
  answer_.nonce = nonce.value();
  const bool meant = hello_.to == self_.rank && hello_.version == kWireVersion;
  if (meant) answer_.proof = prove(self_.secret, Role::kAcceptor, hello_, answer_.nonce);
  if (!send(answer_)) return false;
  if (!meant) {
    // The answer must arrive before the end does.
    ::shutdown(fd(), SHUT_WR);
    fail("called somebody else");
  }
  return meant;
}

}  // namespace tessera::tcp
