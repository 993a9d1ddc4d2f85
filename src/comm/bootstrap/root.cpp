#include "comm/bootstrap/root.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error_text.h"
#include "base/log.h"
#include "comm/bootstrap/agreement.h"
#include "comm/bootstrap/socket_io.h"
#include "comm/bootstrap/unique_id.h"
#include "comm/bootstrap/wire.h"

namespace tessera::bootstrap {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kAcceptPause{100};  // when descriptors have run out
constexpr milliseconds kAnswerLimit = std::chrono::seconds(5);

class Root {
 public:
  Root(Listener listener, const Key& secret, const RootOptions& options)
      : listener_(std::move(listener)),
        secret_(secret),
        options_(options),
        end_(Deadline::after(options.idle)),
        accept_again_(Deadline::after(milliseconds(0))),
        next_notice_(Deadline::after(options.notice)),
        notice_wait_(options.notice) {}

  void run() {
    while (!done_) {
      std::vector<pollfd> polled = descriptors();
      if (::poll(polled.data(), polled.size(), wait_ms()) < 0 && errno != EINTR) {
        fail(Status::error(Code::kSystem, "rendezvous: poll: {}", error_text(errno)));
        done_ = true;
        continue;
      }
      watch_joined(polled);
      read_pending(polled);
      if (polled[0].revents != 0 && !done_) accept_some();
      look_at_the_clock();
    }
  }

 private:
  // A connection that has not said a complete hello.
  struct Pending {
    Fd fd;
    Nonce nonce;
    std::string in;
    Deadline until;
    Deadline young_until;
  };
  struct Joined {
    Fd fd;
    Nonce nonce;
    Hello hello;
  };

  // The listener, then pending_, then joined_, each in order.
  std::vector<pollfd> descriptors() const {
    std::vector<pollfd> polled;
    polled.reserve(1 + pending_.size() + joined_.size());
    polled.push_back({accepting() ? listener_.fd.get() : -1, POLLIN, 0});
    for (const Pending& pending : pending_) polled.push_back({pending.fd.get(), POLLIN, 0});
    for (const Joined& joined : joined_) polled.push_back({joined.fd.get(), POLLIN, 0});
    return polled;
  }

  bool accepting() const {
    if (!accept_again_.passed()) return false;
    return pending_.size() < options_.max_pending || pending_.front().young_until.passed();
  }

  int wait_ms() const {
    int wait = end_.left_ms();
    if (!pending_.empty()) wait = std::min(wait, pending_.front().until.left_ms());
    if (!joined_.empty()) wait = std::min(wait, next_notice_.left_ms());
    if (!accept_again_.passed()) wait = std::min(wait, accept_again_.left_ms());
    if (pending_.size() >= options_.max_pending && !accepting()) {
      wait = std::min(wait, pending_.front().young_until.left_ms());
    }
    return wait;
  }

  void accept_some() {
    for (int i = 0; i < 64 && accepting(); ++i) {
      Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        // Out of descriptors or memory: a stranger's connection goes first.
        return pause_accepting(errno);
      }
      cannot_accept_.clear();
      if (pending_.size() >= options_.max_pending) pending_.erase(pending_.begin());
      Result<Key> nonce = random_key();
      if (!nonce.ok()) return;
      const Challenge challenge{kWireMagic, nonce.value()};
      if (!send_at_once(fd.get(), &challenge, sizeof challenge)) continue;
      pending_.push_back({std::move(fd),
                          nonce.value(),
                          {},
                          Deadline::after(options_.hello_limit),
                          Deadline::after(options_.least_age)});
    }
  }

  void pause_accepting(int error) {
    if (!pending_.empty()) pending_.erase(pending_.begin());
    accept_again_ = Deadline::after(kAcceptPause);
    if (cannot_accept_.empty())
      log::warn(-1, "rendezvous at {}: accept: {}", to_text(listener_.address), error_text(error));
    cannot_accept_ = fmt::format("; the root cannot accept connections: {}", error_text(error));
  }

  void read_pending(const std::vector<pollfd>& polled) {
    std::vector<Pending> waiting;
    std::vector<Pending> before = std::exchange(pending_, {});
    for (size_t i = 0; i < before.size(); ++i) {
      Pending& pending = before[i];
      const bool keep = polled[1 + i].revents == 0 ? !pending.until.passed() : read_hello(pending);
      if (keep) waiting.push_back(std::move(pending));
    }
    pending_ = done_ ? std::vector<Pending>() : std::move(waiting);
  }

  // False when the connection is no longer pending: dropped, answered or joined.
  bool read_hello(Pending& pending) {
    const auto header = [&] {
      FrameHeader h;
      std::memcpy(&h, pending.in.data(), sizeof h);
      return h;
    };
    for (;;) {
      size_t wanted = sizeof(FrameHeader);
      if (pending.in.size() >= wanted) {
        const FrameHeader h = header();
        if (h.magic != kWireMagic || h.kind != MessageKind::kHello ||
            h.body_bytes > kMaxHelloBytes) {
          return false;
        }
        wanted += h.body_bytes;
        if (pending.in.size() == wanted) break;
      }
      switch (receive_some(pending.fd.get(), pending.in, wanted)) {
        case ReadOutcome::kNothingYet:
          return !pending.until.passed();
        case ReadOutcome::kEnded:
          return false;
        case ReadOutcome::kGotSome:
          break;
      }
    }
    const std::string_view body = std::string_view(pending.in).substr(sizeof(FrameHeader));
    if (!done_ && genuine(secret_, pending.nonce, header(), body)) {
      take_hello(pending, header().version, body);
    }
    return false;
  }

  void take_hello(Pending& pending, uint32_t version, std::string_view body) {
    const Result<std::pair<int32_t, int32_t>> numbers = unpack_numbers(body);
    if (!numbers.ok()) return;
    const int32_t rank = numbers->first;
    Status trouble = failure_;
    if (trouble.ok() && version != kVersion) trouble = version_mismatch(rank, version, hellos());
    Result<Hello> hello = version == kVersion ? unpack_hello(body) : Result<Hello>(Hello{});
    if (trouble.ok()) trouble = hello.status();
    if (trouble.ok()) trouble = check_hello(hello.value(), hellos());
    if (!trouble.ok()) {
      if (ranks_ == 0) ranks_ = numbers->second;
      fail(trouble);
      reject(pending.fd.get(), pending.nonce, rank);
      return;
    }
    const Deadline given_up = Deadline::after(milliseconds(hello->wait_ms));
    if (joined_.empty()) {
      ranks_ = hello->ranks;
      first_came_ = Deadline::Clock::now();
      next_notice_ = Deadline::after(notice_wait_);
      end_ = given_up;
    }
    if (given_up.left() < end_.left()) end_ = given_up;
    joined_.push_back({std::move(pending.fd), pending.nonce, std::move(hello).value()});
    if (static_cast<int32_t>(joined_.size()) == ranks_) complete();
  }

  // A rank that has joined says nothing more; its socket turns readable when it is gone. Before
  // read_pending: same order as polled.
  void watch_joined(const std::vector<pollfd>& polled) {
    for (size_t i = 0; i < joined_.size(); ++i) {
      if (polled[1 + pending_.size() + i].revents == 0) continue;
      return fail(Status::error(Code::kRemote, "{} left before all {} ranks had joined",
                                name_of(joined_[i].hello.member), ranks_));
    }
  }

  void look_at_the_clock() {
    if (done_) return;
    if (!failure_.ok() && ranks_ > 0 && static_cast<int32_t>(answered_.size()) >= ranks_) {
      done_ = true;
    }
    if (failure_.ok() && !joined_.empty() && next_notice_.passed()) notice();
    if (!end_.passed()) return;
    if (failure_.ok() && !joined_.empty()) {
      fail(Status(Code::kTimeout, missing_now()));
    } else {
      done_ = true;
    }
  }

  std::string missing_now() const {
    const auto waited =
        std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - first_came_);
    return missing_text(missing(hellos(), ranks_), ranks_, waited) + cannot_accept_;
  }

  void notice() {
    log::warn(-1, "rendezvous at {}: {}", to_text(listener_.address), missing_now());
    notice_wait_ *= 2;
    next_notice_ = Deadline::after(notice_wait_);
  }

  std::vector<const Hello*> hellos() const {
    std::vector<const Hello*> out;
    for (const Joined& joined : joined_) out.push_back(&joined.hello);
    return out;
  }

  void complete() {
    std::vector<Member> members(joined_.size());
    for (const Joined& joined : joined_) {
      members[static_cast<size_t>(joined.hello.rank)] = joined.hello.member;
    }
    const Result<Key> secret = random_key();
    if (!secret.ok()) return fail(secret.status());
    // Closed before the first answer: the address is free when any rank returns.
    close_listener(listener_.fd);
    const std::string body = pack(Welcome{secret.value(), members});
    std::vector<Outgoing> answers;
    for (Joined& joined : joined_) {
      const FrameHeader header = seal(secret_, joined.nonce, MessageKind::kWelcome, body);
      answers.push_back({std::move(joined.fd), bytes_of(header)});
    }
    send_all(std::move(answers), body, Deadline::after(kAnswerLimit));
    joined_.clear();
    done_ = true;
  }

  // The first reason holds; whoever comes later gets it too.
  void fail(const Status& reason) {
    if (!failure_.ok()) return;
    failure_ = reason;
    end_ = Deadline::after(options_.linger);
    log::info(-1, "rendezvous at {} failed: {}", to_text(listener_.address), reason.message());
    for (const Joined& joined : joined_) reject(joined.fd.get(), joined.nonce, joined.hello.rank);
    joined_.clear();
  }

  void reject(int fd, const Nonce& nonce, int32_t rank) {
    const std::string body = pack_rejection(failure_);
    const std::string frame = bytes_of(seal(secret_, nonce, MessageKind::kRejection, body)) + body;
    send_at_once(fd, frame.data(), frame.size());
    if (rank >= 0 && rank < ranks_) answered_.insert(rank);
  }

  Listener listener_;
  const Key secret_;
  const RootOptions options_;
  std::vector<Pending> pending_;  // oldest first
  std::vector<Joined> joined_;    // in the order they came
  int32_t ranks_ = 0;             // as the first hello says
  Status failure_;
  std::set<int32_t> answered_;  // ranks that know of the failure
  Deadline end_;
  Deadline accept_again_;
  std::string cannot_accept_;  // why not; empty: it can
  Deadline next_notice_;
  milliseconds notice_wait_;
  Deadline::Clock::time_point first_came_{};
  bool done_ = false;
};

}  // namespace

Result<Listener> listen_at(const SocketAddress& address, Deadline deadline) {
  const auto failed = [&](const char* call) {
    return Status::error(Code::kSystem, "rendezvous at {}: {}: {}", to_text(address), call,
                         error_text(errno));
  };
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return failed("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  while (::bind(fd.get(), address.get(), address.bytes) != 0 ||
         ::listen(fd.get(), SOMAXCONN) != 0) {
    if (errno == EADDRNOTAVAIL) {
      return Status::error(Code::kInvalidUsage,
                           "rendezvous at {}: this host has no such address (rank 0 must run on "
                           "the host that NCCL_COMM_ID names)",
                           to_text(address));
    }
    if (errno != EADDRINUSE || deadline.passed()) return failed("bind");
    ::poll(nullptr, 0, std::min(20, deadline.left_ms()));
  }
  Listener listener{std::move(fd), {}};
  listener.address.bytes = sizeof listener.address.storage;
  if (::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&listener.address.storage),
                    &listener.address.bytes) != 0) {
    return failed("getsockname");
  }
  return listener;
}

Status start_root(Listener listener, const Key& secret, const RootOptions& options) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it
  Status status;
  try {
    std::thread([root = std::make_unique<Root>(std::move(listener), secret, options)] {
      ::pthread_setname_np(::pthread_self(), "tessera-root");
      root->run();
    }).detach();
  } catch (const std::system_error& error) {
    status = Status::error(Code::kSystem, "cannot start the root thread: {}", error.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace tessera::bootstrap
