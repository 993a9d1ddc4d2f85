#include "transports/tcp/door.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error_text.h"

namespace tessera::tcp {
namespace {

constexpr size_t kMaxStrangers = 256;
constexpr std::chrono::seconds kSeatLimit{60};

bool transient(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}

}  // namespace

Status Door::serve(std::vector<Contact*> contacts, int timeout_ms) {
  for (const Visit& visit : visits_) contacts.push_back(visit.guest.get());
  std::vector<pollfd> polled;
  for (Contact* contact : contacts) polled.push_back({contact->fd(), contact->events(), 0});
  for (const Fd& listening : listener_.sockets()) polled.push_back({listening.get(), POLLIN, 0});
  if (polled.empty() && timeout_ms == 0) return {};
  ::poll(polled.data(), polled.size(), timeout_ms);
  for (size_t i = 0; i < contacts.size(); ++i) {
    if (polled[i].revents != 0) contacts[i]->serve();
  }
  more_outside_ = false;
  for (size_t i = 0; i < listener_.sockets().size(); ++i) {
    if (polled[contacts.size() + i].revents == 0) continue;
    if (Status status = let_in(listener_.sockets()[i]); !status.ok()) return status;
  }
  return {};
}

// Of those that have not shown that they know the secret.
bool Door::drop_oldest() {
  const auto oldest = std::find_if(visits_.begin(), visits_.end(),
                                   [](const Visit& visit) { return !visit.guest->knows_secret(); });
  if (oldest == visits_.end()) return false;
  visits_.erase(oldest);
  ++turned_away_;
  return true;
}

Status Door::let_in(const Fd& listening) {
  for (size_t i = 0; i < limits_.at_once; ++i) {
    Fd fd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      visits_.push_back({std::make_unique<Guest>(self_, std::move(fd)), {}});
      visits_.back().guest->serve();  // its hello is often there already
      if (visits_.size() > kMaxStrangers) drop_oldest();
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    if (transient(errno)) continue;
    const int error = errno;
    if (drop_oldest()) continue;  // out of descriptors: a stranger's is free now
    return Status::error(Code::kSystem, "rank {} cannot accept connections of its peers: {}",
                         self_.rank, error_text(error));
  }
  more_outside_ = true;
  return {};
}

std::vector<std::unique_ptr<Guest>> Door::take_seated(Clock::time_point now) {
  std::vector<std::unique_ptr<Guest>> seated;
  for (Visit& visit : std::exchange(visits_, {})) {
    auto& [guest, since] = visit;
    if (!since) since = now;
    const bool slow = now - *since > (guest->knows_secret() ? kSeatLimit : limits_.proof);
    if (guest->failed() || slow) {
      if (!guest->knows_secret()) ++turned_away_;  // else a peer that has found a better way
    } else if (guest->state() == Guest::State::kSeated) {
      seated.push_back(std::move(guest));
    } else {
      visits_.push_back(std::move(visit));
    }
  }
  return seated;
}

}  // namespace tessera::tcp
