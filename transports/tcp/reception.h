// Gathers the sockets of peers that call: all of a peer's are ready at once.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "transports/tcp/door.h"
#include "transports/tcp/link.h"

namespace tessera::tcp {

class Reception {
 public:
  using Clock = std::chrono::steady_clock;

  // `callers`: the ranks that will call.
  Reception(const Self& self, Listener listener, std::set<int> callers);

  Door& door() { return door_; }
  const Door& door() const { return door_; }
  // After the door has served, or time has passed.
  void proceed(Clock::time_point now);

  const std::set<int>& missing() const { return missing_; }
  // Of a peer that is not missing: by seat.
  std::vector<std::unique_ptr<Link>> take_sockets(int peer);

 private:
  struct Party {
    int peer = -1;
    std::vector<std::unique_ptr<Guest>> seats;
    size_t taken = 0;
  };

  void seat(std::unique_ptr<Guest> guest);

  Door door_;
  std::set<int> missing_;
  std::vector<Party> parties_;
};

}  // namespace tessera::tcp
