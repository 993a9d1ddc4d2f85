// Where peers knock: takes in calls, and greets them until they ask for a seat.
//
// Strangers (port scans, garbage, other jobs) are dropped when they say something wrong, when they
// say nothing for five seconds, or when there are too many; a peer is served at once, whoever else
// is there. Thread safety: one thread.
#pragma once

#include <memory>
#include <vector>

#include "transports/tcp/contact.h"
#include "transports/tcp/listener.h"

namespace tessera::tcp {

class Door {
 public:
  using Clock = std::chrono::steady_clock;

  // `self` must stay.
  Door(const Self& self, Listener listener) : self_(self), listener_(std::move(listener)) {}

  const Listener& listener() const { return listener_; }
  Listener take_listener() { return std::move(listener_); }

  // Waits, so long at most, until somebody knocks, or a guest or one of `others` has something to
  // be served; lets in and serves. kSystem.
  Status serve(std::vector<Contact*> others, int timeout_ms);
  // Guests who know the secret and ask for a seat; they are the caller's from now on.
  std::vector<std::unique_ptr<Guest>> take_seated(Clock::time_point now);

  bool has_guests() const { return !guests_.empty(); }
  size_t turned_away() const { return turned_away_; }

 private:
  Status let_in(const Fd& listening);
  bool drop_oldest();

  const Self& self_;
  Listener listener_;
  std::vector<std::unique_ptr<Guest>> guests_;  // oldest first
  size_t turned_away_ = 0;
};

}  // namespace tessera::tcp
