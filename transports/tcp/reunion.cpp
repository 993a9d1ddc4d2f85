#include "transports/tcp/reunion.h"

#include <algorithm>

#include "base/log.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::milliseconds kTick{20};  // while somebody is being greeted
constexpr std::chrono::seconds kSeekEvery{1};
constexpr std::chrono::seconds kLongestPause{60};
// One of the two may wait in a call for the other, which calls now and then only: a greeting needs
// up to three calls of the latter.
constexpr std::chrono::seconds kGreeting{60};
constexpr size_t kCallersAtOnce = 8;  // the door is open for the job's life: no flood

}  // namespace

Reunion::Reunion(const Self& self, Listener listener, std::chrono::milliseconds timeout)
    : self_(self),
      door_(self_, std::move(listener), {kCallersAtOnce, kGreeting}),
      timeout_(timeout) {}

void Reunion::watch(TcpPort& port, std::vector<Way> ways) {
  if (ways.empty()) called_.push_back(&port);
  for (size_t seat = 0; seat < ways.size(); ++seat)
    seekers_.push_back({&port, seat, ways[seat], nullptr, {}, {}, {}, kSeekEvery});
}

void Reunion::proceed(Clock::time_point now, std::vector<Link*>& back) {
  in_calls_ += std::min<Clock::duration>(now - last_, kSeekEvery);
  last_ = now;
  std::vector<Contact*> calls;
  for (const Seeker& seeker : seekers_) {
    if (seeker.call != nullptr) calls.push_back(seeker.call.get());
  }
  // Who cannot be let in now calls again.
  if (const Status status = door_.serve(std::move(calls), 0); !status.ok()) tell(status.message());
  for (const auto& guest : door_.take_seated(in_calls_)) admit(*guest, back);
  bool busy = door_.busy();
  for (Seeker& seeker : seekers_) {
    seek(seeker, now, back);
    busy = busy || seeker.call != nullptr;
  }
  next_ = now + (busy ? kTick : Clock::duration(kSeekEvery));
}

void Reunion::seek(Seeker& seeker, Clock::time_point now, std::vector<Link*>& back) {
  TcpPort& port = *seeker.port;
  Link& link = *port.sockets()[seeker.seat];
  if (port.closed()) return seeker.call.reset();
  if (link.alive) {
    if (now >= seeker.back + kLongestPause) seeker.pause = kSeekEvery;
    seeker.next = now + seeker.pause;
    return;
  }
  if (seeker.call == nullptr) {
    if (now < seeker.next) return;
    seeker.call = std::make_unique<Call>(self_, port.peer(), seeker.way);
    seeker.begun = in_calls_;
  }
  Call& call = *seeker.call;
  if (!call.failed() && call.state() == Call::State::kVerified) {
    call.take({static_cast<uint32_t>(seeker.seat), static_cast<uint32_t>(port.sockets().size()),
               static_cast<uint32_t>(link.rail), 0});
  }
  const auto limit = call.state() == Call::State::kConnecting ? kNoAnswer : kGreeting;
  const bool late = in_calls_ >= seeker.begun + limit;
  if (!call.failed() && call.state() == Call::State::kReady) {
    std::string route = call.route();
    if (port.replace(link, call.release(), std::move(route), timeout_)) back.push_back(&link);
    seeker.back = now;
    seeker.call.reset();
    seeker.pause = std::min<Clock::duration>(2 * seeker.pause, kLongestPause);
  } else if (call.failed() || late) {
    tell(fmt::format("rail {} to rank {} does not come back over {}: {}", link.rail, port.peer(),
                     to_text(seeker.way.to), call.failed() ? call.failure() : "no answer"));
    seeker.call.reset();
    seeker.next = now + seeker.pause;
  }
}

// A seat that is not as at the start is nobody's: the guest is left. So is one that has given up
// meanwhile: what its seat names may be healthy, and its socket is dead.
void Reunion::admit(Guest& guest, std::vector<Link*>& back) {
  const auto at = std::find_if(called_.begin(), called_.end(),
                               [&](const TcpPort* port) { return port->peer() == guest.from(); });
  if (at == called_.end() || (*at)->closed()) return;
  const Seat& seat = guest.seat();
  const auto& sockets = (*at)->sockets();
  if (seat.count != sockets.size() || static_cast<int>(seat.rail) != sockets[seat.index]->rail) {
    return tell(fmt::format("rank {} asks for seat {} of {}, rail {}, which there was not",
                            guest.from(), seat.index, seat.count, seat.rail));
  }
  if (!guest.waits()) return;
  guest.say_ready();
  if (guest.failed()) return;
  std::string route = guest.route();
  Link& link = *sockets[seat.index];
  if ((*at)->replace(link, guest.release(), std::move(route), timeout_)) back.push_back(&link);
}

void Reunion::tell(std::string trouble) {
  const auto [at, is_new] = told_.insert(std::move(trouble));
  if (is_new) log::info(self_.rank, "tcp: {}", *at);
}

}  // namespace tessera::tcp
