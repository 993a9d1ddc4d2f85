// Brings back the sockets of rails that were lost.
//
// Who dialed at the start dials again, a second after the loss and then from time to time; who took
// calls still does. The greeting is that of the start, with the seat of the socket that is missing.
// All of it happens when the engine looks around: nobody waits for it, and nothing else wakes a
// rank, nor takes part in a greeting between calls of the user: that time is not counted against
// anybody, and who waits in a call meanwhile is patient. A rail that is lost again soon is tried ever more seldom.
//
//   dialer    lost ... Hello       Proof, Seat       replaces
//                        \    Answer  /     \    Ready  /
//   acceptor               ------'            replaces     (its own may not count as lost yet)
//
// Thread safety: one thread, that of the engine.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transports/tcp/door.h"
#include "transports/tcp/tcp_port.h"

namespace tessera::tcp {

class Reunion {
 public:
  using Clock = std::chrono::steady_clock;

  // `listener`: where peers call; may be an empty one if none does. `timeout`: see prepare().
  Reunion(const Self& self, Listener listener, std::chrono::milliseconds timeout);

  // A port over several rails, which must stay. `ways`: by socket; empty: the peer dials.
  void watch(TcpPort& port, std::vector<Way> ways);

  // Takes no time. Appends links that live again.
  void proceed(Clock::time_point now, std::vector<Link*>& back);
  // When proceed() is to be called next.
  Clock::time_point next() const { return next_; }

 private:
  // A socket that this rank dials.
  struct Seeker {
    TcpPort* port;
    size_t seat;
    Way way;
    std::unique_ptr<Call> call;
    Clock::time_point begun;  // the call, as in_calls_ has it
    Clock::time_point back;   // the socket, at the last time
    Clock::time_point next;
    Clock::duration pause;
  };

  void seek(Seeker& seeker, Clock::time_point now, std::vector<Link*>& back);
  void admit(Guest& guest, std::vector<Link*>& back);
  // Logs it, unless it was told before: the same trouble comes back with every try.
  void tell(std::string trouble);

  const Self self_;
  Door door_;
  const std::chrono::milliseconds timeout_;
  std::vector<Seeker> seekers_;
  std::vector<TcpPort*> called_;  // ports whose peers dial
  Clock::time_point next_ = Clock::now();
  Clock::time_point last_ = next_;
  Clock::time_point in_calls_;  // a clock that stands still while nobody calls proceed()
  std::set<std::string> told_;
};

}  // namespace tessera::tcp
