#include "transports/tcp/reception.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::seconds kHelloLimit{5};
constexpr size_t kMaxStrangers = 256;

Endpoint name_of(int fd, decltype(&::getpeername) which) {
  Endpoint endpoint;
  SocketAddress address;
  address.bytes = sizeof address.storage;
  if (which(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) == 0)
    set_address(endpoint, address.get());
  return endpoint;
}

bool transient(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}

}  // namespace

Reception::Reception(const Self& self, Listener listener, std::set<int> callers)
    : self_(self), listener_(std::move(listener)), missing_(std::move(callers)) {}

void Reception::collect(std::vector<Contact*>& contacts) const {
  for (const auto& guest : guests_) contacts.push_back(guest.get());
}

// Of those that have not shown that they know the secret.
bool Reception::drop_oldest() {
  const auto oldest = std::find_if(guests_.begin(), guests_.end(),
                                   [](const auto& guest) { return !guest->knows_secret(); });
  if (oldest == guests_.end()) return false;
  guests_.erase(oldest);
  ++turned_away_;
  return true;
}

Status Reception::let_in(const Fd& door) {
  for (size_t i = 0; i < kMaxStrangers; ++i) {
    Fd fd(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      guests_.push_back(std::make_unique<Guest>(self_, std::move(fd)));
      guests_.back()->serve();  // its hello is often there already
      if (guests_.size() > kMaxStrangers) drop_oldest();
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (transient(errno)) continue;
    const int error = errno;
    if (drop_oldest()) continue;  // out of descriptors: a stranger's is free now
    return Status::error(Code::kSystem, "rank {} cannot accept connections of its peers: {}",
                         self_.rank, error_text(error));
  }
  return {};
}

void Reception::proceed(Clock::time_point now) {
  std::vector<std::unique_ptr<Guest>> all;
  all.swap(guests_);
  for (auto& guest : all) {
    const bool slow = !guest->knows_secret() && now - guest->since() > kHelloLimit;
    if (guest->failed() || slow) {
      if (!guest->knows_secret()) ++turned_away_;  // else a peer that has found a better way
    } else if (guest->state() == Guest::State::kSeated) {
      seat(std::move(guest));
    } else {
      guests_.push_back(std::move(guest));
    }
  }
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
      link->route = fmt::format("{} to {}", address_text(name_of(guest->fd(), ::getsockname)),
                                address_text(name_of(guest->fd(), ::getpeername)));
      link->fd = guest->release();
      links.push_back(std::move(link));
    }
  }
  return links;
}

}  // namespace tessera::tcp
