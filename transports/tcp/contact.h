// A socket on its way to become a link: the dialing and the accepting side of the greeting.
//
// Nothing here waits: serve() goes as far as what has come allows. Thread safety: one thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "transports/tcp/endpoint.h"
#include "transports/tcp/greeting.h"

namespace tessera::tcp {

// A call that is not answered for so long is made anew: the kernel would ask ever more seldom.
inline constexpr std::chrono::seconds kNoAnswer{3};

// This rank.
struct Self {
  int rank;
  Secret secret;
};

class Contact {
 public:
  virtual ~Contact() = default;
  Contact(const Contact&) = delete;
  Contact& operator=(const Contact&) = delete;

  int fd() const { return fd_.get(); }
  Endpoint local() const;
  Endpoint remote() const;
  Fd release() { return std::move(fd_); }
  virtual short events() const { return POLLIN; }
  virtual void serve() = 0;

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 protected:
  explicit Contact(Fd fd) : fd_(std::move(fd)) {}

  void fail(std::string why);
  // True once `message` has come whole.
  template <class T>
  bool receive(T& message) {
    return receive_bytes(&message, sizeof message);
  }
  template <class T>
  bool send(const T& message) {
    return send_bytes(&message, sizeof message);
  }

 private:
  bool receive_bytes(void* message, size_t bytes);
  bool send_bytes(const void* message, size_t bytes);

  Fd fd_;
  uint8_t partial_[64];
  size_t received_ = 0;
  std::string failure_;
};

// The dialing side.
class Call final : public Contact {
 public:
  enum class State { kConnecting, kAnswer, kVerified, kSeated, kReady };

  // Starts to connect.
  Call(const Self& self, int peer, const Way& way);

  State state() const { return state_; }
  short events() const override { return state_ == State::kConnecting ? POLLOUT : POLLIN; }
  void serve() override;
  // After kVerified.
  void take(const Seat& seat);
  // "10.0.0.1:4711 to 10.0.0.2:4712 (eth0)"
  std::string route() const;
  // Another try would end alike.
  bool hopeless() const { return hopeless_; }
  // It has failed, and nobody was there.
  bool unreachable() const { return unreachable_; }

 private:
  void fail_to_connect(int error);
  void say_hello();
  void check_answer();

  const Self& self_;
  const Endpoint to_;
  Hello hello_;
  State state_ = State::kConnecting;
  bool hopeless_ = false;
  bool unreachable_ = false;
};

// The accepting side.
class Guest final : public Contact {
 public:
  enum class State { kHello, kProof, kSeat, kSeated };

  Guest(const Self& self, Fd fd) : Contact(std::move(fd)), self_(self) {}

  State state() const { return state_; }
  void serve() override;
  void say_ready() { send(Ready{}); }
  // "10.0.0.1:4711 to 10.0.0.2:4712"
  std::string route() const;

  int from() const { return hello_.from; }
  const Seat& seat() const { return seat_; }
  bool knows_secret() const { return state_ >= State::kSeat; }
  // For Ready: the other side has not closed its socket, nor said anything, since it took a seat.
  bool waits() const;

 private:
  bool answer();

  const Self& self_;
  Hello hello_;
  Answer answer_;
  Seat seat_;
  State state_ = State::kHello;
};

}  // namespace tessera::tcp
