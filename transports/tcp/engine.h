// The ports of a rank over TCP, driven by the thread that owns them.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "device/port.h"
#include "transports/tcp/reunion.h"
#include "transports/tcp/tcp_port.h"

namespace tessera::tcp {

// What connects a rank with one peer, before there is a port.
struct Connection {
  int peer = -1;
  std::string name;  // "rank 3 (host b)"
  std::vector<std::unique_ptr<Link>> sockets;
  std::vector<Way> ways;  // by socket; empty: the peer dials
};

class Engine final : public PortEngine {
 public:
  // Of `rank`. Rails that are lost stay so without a `reunion`. kSystem.
  static Result<std::unique_ptr<PortEngine>> create(std::vector<Connection> connections, int rank,
                                                    Landing& landing,
                                                    std::unique_ptr<Reunion> reunion = nullptr);
  // What was flushed still reaches the peers (farewell.h); what they send from now on is dropped.
  ~Engine() override;

  Port* port(int rank) override;
  bool progress() override;
  void retract() override;
  bool flushed() const override;
  int wait_fd() const override { return links_.wait_fd(); }
  std::chrono::nanoseconds due_in() const override;

 private:
  // Up to so many sockets are read without asking which are ready: that would be one more call.
  static constexpr size_t kReadUnasked = 3;
  // One of so many calls that moved something looks at the clock.
  static constexpr uint32_t kLookWhenBusy = 32;
  static constexpr std::chrono::milliseconds kPatienceWithPages{200};

  Engine() = default;

  // True if there may be more to read.
  bool receive(Link& link, bool& moved);
  bool serve_ready(bool read);
  void end_failed();
  bool acknowledge();
  void await_pages();
  void look_around();
  void reunite(std::chrono::steady_clock::time_point now);
  void forget_dead();

  Links links_;
  std::vector<std::unique_ptr<TcpPort>> ports_;  // by rank
  std::vector<TcpPort*> acknowledging_;          // ports over several rails
  std::vector<Link*> alive_;
  std::unique_ptr<Reunion> reunion_;  // null: none
  bool some_died_ = false;
  bool in_vain_ = false;  // the last progress() found nothing to read
  uint32_t busy_calls_ = 0;
  std::chrono::steady_clock::time_point next_look_;
};

}  // namespace tessera::tcp
