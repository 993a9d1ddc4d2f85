// Takes in the calls of peers: greets them, and gathers the sockets of each.
//
// Strangers (port scans, garbage, other jobs) are dropped when they say something wrong, when they
// say nothing for five seconds, or when there are too many; a peer is served at once, whoever else
// is there. Thread safety: one thread.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "transports/tcp/contact.h"
#include "transports/tcp/link.h"
#include "transports/tcp/listener.h"

namespace tessera::tcp {

class Reception {
 public:
  using Clock = std::chrono::steady_clock;

  // `callers`: the ranks that will call.
  Reception(const Self& self, Listener listener, std::set<int> callers);

  std::span<const Fd> listening() const { return listener_.sockets(); }
  const Listener& listener() const { return listener_; }
  // Guests whose sockets are to be watched.
  void collect(std::vector<Contact*>& contacts) const;
  // Who has knocked at a listening socket comes in. kSystem.
  Status let_in(const Fd& door);
  // After the contacts have been served, or time has passed.
  void proceed(Clock::time_point now);

  bool complete() const { return missing_.empty(); }
  const std::set<int>& missing() const { return missing_; }
  size_t turned_away() const { return turned_away_; }
  // After complete(): by seat, and whose they are.
  std::vector<std::unique_ptr<Link>> take_sockets(int peer);

 private:
  struct Party {
    int peer = -1;
    std::vector<std::unique_ptr<Guest>> seats;
    size_t taken = 0;
  };

  void seat(std::unique_ptr<Guest> guest);
  bool drop_oldest();

  const Self& self_;
  Listener listener_;
  std::set<int> missing_;
  std::vector<std::unique_ptr<Guest>> guests_;  // oldest first
  std::vector<Party> parties_;
  size_t turned_away_ = 0;
};

}  // namespace tessera::tcp
