// Finds the ways to one peer and opens the sockets to it.
//
// All its addresses are tried at once, again and again while nobody answers there. When the first has
// proved to be the peer's, better ones get a moment longer; then the rails are chosen among those
// that answered, and the sockets are dealt out over them. So an address that leads nowhere, or to
// somebody else, costs at most that moment.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/tcp/contact.h"
#include "transports/tcp/link.h"

namespace tessera::tcp {

class PeerDialer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State { kProbing, kSeating, kDone, kFailed };

  // `local`: addresses of this rank, which must stay. `sockets`: how many to open.
  PeerDialer(const Self& self, int peer, std::span<const Endpoint> endpoints,
             std::span<const LocalAddress> local, int sockets);

  State state() const { return state_; }
  // Calls whose sockets are to be watched.
  void collect(std::vector<Contact*>& contacts) const;
  // After the contacts have been served, or time has passed.
  void proceed(Clock::time_point now);
  // Each address with what became of it.
  std::string report() const;
  // After kDone, in the order of their seats.
  std::vector<std::unique_ptr<Link>> take_sockets();
  // After kDone, by seat: how to dial anew.
  const std::vector<Way>& ways() const { return ways_; }

 private:
  // One address, tried until it answers, or somebody refuses too often.
  struct Attempt {
    Way way;
    std::unique_ptr<Call> call;
    int refusals = 0;
    bool over = false;
    Clock::time_point begun;  // the latest try
    Clock::time_point next;
    std::string failure;
    // Not worth a moment's wait while there is another.
    bool late() const { return way.to.late != 0 || (way.from && way.from->late != 0); }
    bool verified() const { return call != nullptr && call->state() == Call::State::kVerified; }
  };
  struct Rail {
    Way way;
    const LocalAddress* local;  // where it begins; null: nowhere that this rank listens at
  };

  void try_address(Attempt& attempt, Clock::time_point now);
  void probe(Clock::time_point now);
  void choose_rails();
  void take_seats();
  void fail(std::string why);

  const Self& self_;
  const int peer_;
  const size_t sockets_;
  const std::span<const LocalAddress> local_;
  std::vector<Attempt> attempts_;  // best first
  std::vector<Rail> rails_;
  std::vector<std::unique_ptr<Call>> calls_;  // by seat; seat i is on rail i modulo their number
  std::vector<Way> ways_;
  State state_ = State::kProbing;
  Clock::time_point first_answer_ = Clock::time_point::max();
  std::string failure_;
};

}  // namespace tessera::tcp
