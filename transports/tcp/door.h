// Where peers knock: takes in calls, and greets them until they ask for a seat.
//
// Strangers (port scans, garbage, other jobs) are dropped when they say something wrong, when they
// say nothing for a while, or when there are too many; a peer is served at once, whoever else
// is there, and dropped if it asks for no seat within a minute. Thread safety: one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "transports/tcp/contact.h"
#include "transports/tcp/listener.h"

namespace tessera::tcp {

struct DoorLimits {
  size_t at_once = 256;           // calls that one serve() takes from each socket
  std::chrono::seconds proof{5};  // until a stranger has shown that it knows the secret
};

class Door {
 public:
  using Clock = std::chrono::steady_clock;

  // `self` must stay.
  Door(const Self& self, Listener listener, const DoorLimits& limits = {})
      : self_(self), listener_(std::move(listener)), limits_(limits) {}

  const Listener& listener() const { return listener_; }
  Listener take_listener() { return std::move(listener_); }

  // Waits, so long at most, until somebody knocks, or a guest or one of `others` has something to
  // be served; lets in and serves. kSystem.
  Status serve(std::vector<Contact*> others, int timeout_ms);
  // Guests who know the secret and ask for a seat; they are the caller's from now on. `now`: by the
  // caller's clock, which may stand still while nobody is served; what guests may take counts by it.
  std::vector<std::unique_ptr<Guest>> take_seated(Clock::time_point now);

  // Somebody is being greeted, or may still stand outside.
  bool busy() const { return !visits_.empty() || more_outside_; }
  size_t turned_away() const { return turned_away_; }

 private:
  struct Visit {
    std::unique_ptr<Guest> guest;
    std::optional<Clock::time_point> since;  // none: has come after the last take_seated()
  };

  Status let_in(const Fd& listening);
  bool drop_oldest();

  const Self& self_;
  Listener listener_;
  const DoorLimits limits_;
  std::vector<Visit> visits_;  // oldest first
  bool more_outside_ = false;
  size_t turned_away_ = 0;
};

}  // namespace tessera::tcp
