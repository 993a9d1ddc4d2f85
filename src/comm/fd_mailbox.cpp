#include "comm/fd_mailbox.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/error_text.h"
#include "base/keyed_hash.h"

namespace tessera {
namespace {

constexpr uint64_t kMagic = 0x7465737365726166;
constexpr size_t kMostDescriptors =
    8;  // more than one is a stranger's message; the kernel closes what does not fit
constexpr int kRetryMs = 5;

struct Header {
  uint64_t magic;
  uint64_t tag;
  std::array<uint8_t, 16> secret;
  int32_t sender;
  uint32_t unused;
};

struct Address {
  sockaddr_un text{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&text); }
};

// Abstract: a zero byte first, no file, gone with its last socket.
Address address_of(const std::string& name) {
  Address address;
  address.text.sun_family = AF_UNIX;
  const size_t n = std::min(name.size(), sizeof address.text.sun_path - 1);
  std::memcpy(address.text.sun_path + 1, name.data(), n);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  return address;
}

Result<Fd> open_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.valid()) return socket;
  return Status::error(Code::kSystem, "cannot open a Unix datagram socket: {}", error_text(errno));
}

// 0, or the error number.
int send_once(int socket, const Address& to, const Header& header, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  iovec data = {const_cast<Header*>(&header), sizeof header};
  msghdr message = {};
  message.msg_name = const_cast<sockaddr_un*>(&to.text);
  message.msg_namelen = to.bytes;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Errors that pass when receivers take their messages. ETOOMANYREFS: too many descriptors of this
// user are on their way.
bool passes(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ETOOMANYREFS;
}

struct Received {
  int error = 0;
  size_t bytes = 0;
  bool descriptors_lost = false;
  Header header{};
  std::vector<Fd> fds;
};

Received receive_once(int socket) {
  Received received;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  iovec data = {&received.header, sizeof received.header};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    received.error = errno;
    return received;
  }
  received.bytes = static_cast<size_t>(n);
  received.descriptors_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + CMSG_LEN(sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  return received;
}

}  // namespace

struct FdMailbox::Message {
  int from;
  uint64_t tag;
  Fd fd;
};

FdMailbox::FdMailbox(Fd socket, std::string name)
    : socket_(std::move(socket)), name_(std::move(name)) {}

FdMailbox::~FdMailbox() = default;

Result<std::unique_ptr<FdMailbox>> FdMailbox::create() {
  std::array<uint8_t, 16> random;
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return Status::error(Code::kSystem, "getrandom: {}", error_text(errno));
  }
  std::string name = "tessera-";
  for (const uint8_t byte : random) name += fmt::format("{:02x}", byte);
  Result<Fd> socket = open_socket();
  if (!socket.ok()) return socket.status();
  const Address address = address_of(name);
  if (::bind(socket.value().get(), address.get(), address.bytes) != 0) {
    return Status::error(Code::kSystem, "cannot bind the abstract socket {}: {}", name,
                         error_text(errno));
  }
  return std::unique_ptr<FdMailbox>(new FdMailbox(std::move(socket).value(), std::move(name)));
}

void FdMailbox::set_secret(const std::array<uint8_t, 16>& secret, int own_rank) {
  secret_ = secret;
  rank_ = own_rank;
}

Status FdMailbox::send(const std::string& to, int fd, uint64_t tag, Deadline deadline) {
  const Address address = address_of(to);
  const Header header{kMagic, tag, secret_, rank_, 0};
  for (;;) {
    const int error = send_once(socket_.get(), address, header, fd);
    if (error == 0) return {};
    if (error == ECONNREFUSED || error == ENOENT || error == ECONNRESET) {
      return Status::error(Code::kRemote,
                           "rank {} cannot pass a descriptor to socket {}: the rank that owned it "
                           "has ended",
                           rank_, to);
    }
    if (!passes(error)) {
      return Status::error(Code::kSystem, "rank {} cannot pass descriptor {} to socket {}: {}",
                           rank_, fd, to, error_text(error));
    }
    if (deadline.passed()) {
      // Two that only try must not fill each other's queues for ever.
      if (Status status = drain(); !status.ok()) return status;
      return Status::error(Code::kTimeout,
                           "rank {} cannot pass a descriptor to socket {}: its owner does not take "
                           "its messages ({})",
                           rank_, to, error_text(error));
    }
    if (Status status = wait_for_room(to, error, deadline); !status.ok()) return status;
  }
}

// Returns when another try is worth while. A datagram socket reports room at the receiver only when
// connected to it.
Status FdMailbox::wait_for_room(const std::string& to, int error, Deadline deadline) {
  int wait_ms = std::min(kRetryMs, deadline.left_ms());
  Fd probe;
  if (error == EAGAIN || error == EWOULDBLOCK) {
    if (Result<Fd> opened = open_socket(); opened.ok()) {
      const Address address = address_of(to);
      if (::connect(opened.value().get(), address.get(), address.bytes) != 0) return {};
      probe = std::move(opened).value();
      wait_ms = deadline.left_ms();
    }
  }
  pollfd polled[2] = {{socket_.get(), POLLIN, 0}, {probe.get(), POLLOUT, 0}};
  if (::poll(polled, 2, wait_ms) < 0 && errno != EINTR) {
    return Status::error(Code::kSystem, "poll: {}", error_text(errno));
  }
  return drain();
}

Status FdMailbox::drain() {
  for (;;) {
    Received received = receive_once(socket_.get());
    if (received.error == EAGAIN || received.error == EWOULDBLOCK) return {};
    if (received.error != 0) {
      return Status::error(Code::kSystem, "rank {} cannot read its descriptor socket: {}", rank_,
                           error_text(received.error));
    }
    const Header& header = received.header;
    const bool genuine = received.bytes == sizeof header && header.magic == kMagic &&
                         equal_in_constant_time(header.secret, secret_);
    if (!genuine) continue;
    if (received.fds.size() == 1) {
      kept_.push_back({header.sender, header.tag, std::move(received.fds.front())});
    } else if (received.descriptors_lost) {
      return Status::error(Code::kSystem, "rank {} cannot take a descriptor from rank {}: {}",
                           rank_, header.sender, error_text(EMFILE));
    }
  }
}

Fd FdMailbox::take(int from, uint64_t tag) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Message& message) {
    return message.from == from && message.tag == tag;
  });
  if (found == kept_.end()) return Fd();
  Fd fd = std::move(found->fd);
  kept_.erase(found);
  return fd;
}

Result<Fd> FdMailbox::receive(int from, uint64_t tag, Deadline deadline) {
  for (;;) {
    if (Status status = drain(); !status.ok()) return status;
    if (Fd fd = take(from, tag); fd.valid()) return fd;
    if (deadline.passed()) {
      return Status::error(Code::kTimeout,
                           "rank {} waits in vain for a descriptor from rank {} (tag {:#x})", rank_,
                           from, tag);
    }
    pollfd polled = {socket_.get(), POLLIN, 0};
    if (::poll(&polled, 1, deadline.left_ms()) < 0 && errno != EINTR) {
      return Status::error(Code::kSystem, "poll: {}", error_text(errno));
    }
  }
}

}  // namespace tessera
