#include "transports/tcp/reception.h"

#include <algorithm>

namespace tessera::tcp {

Reception::Reception(const Self& self, Listener listener, std::set<int> callers)
    : door_(self, std::move(listener)), missing_(std::move(callers)) {}

void Reception::proceed(Clock::time_point now) {
  for (auto& guest : door_.take_seated(now)) seat(std::move(guest));
}

void Reception::seat(std::unique_ptr<Guest> guest) {
  const int peer = guest->from();
  if (!missing_.contains(peer)) return;
  auto party = std::find_if(parties_.begin(), parties_.end(),
                            [&](const Party& p) { return p.peer == peer; });
  if (party == parties_.end()) party = parties_.insert(parties_.end(), Party{peer, {}, 0});
  if (party->seats.size() != guest->seat().count) {  // the peer has begun anew
    party->seats.clear();
    party->seats.resize(guest->seat().count);
    party->taken = 0;
  }
  std::unique_ptr<Guest>& seat = party->seats[guest->seat().index];
  if (seat == nullptr) ++party->taken;
  seat = std::move(guest);
  if (party->taken < party->seats.size()) return;
  bool all_there = true;
  for (const auto& seated : party->seats) {
    seated->say_ready();
    all_there = all_there && !seated->failed();
  }
  if (all_there) {
    missing_.erase(peer);
  } else {
    *party = Party{peer, {}, 0};
  }
}

std::vector<std::unique_ptr<Link>> Reception::take_sockets(int peer) {
  std::vector<std::unique_ptr<Link>> links;
  for (Party& party : parties_) {
    if (party.peer != peer) continue;
    for (const auto& guest : party.seats) {
      auto link = std::make_unique<Link>();
      link->rail = static_cast<int>(guest->seat().rail);
      link->route = guest->route();
      link->fd = guest->release();
      links.push_back(std::move(link));
    }
  }
  return links;
}

}  // namespace tessera::tcp
