#include "transports/tcp/door.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::seconds kHelloLimit{5};
constexpr size_t kMaxStrangers = 256;

bool transient(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}

}  // namespace

Status Door::serve(std::vector<Contact*> contacts, int timeout_ms) {
  for (const auto& guest : guests_) contacts.push_back(guest.get());
  std::vector<pollfd> polled;
  for (Contact* contact : contacts) polled.push_back({contact->fd(), contact->events(), 0});
  for (const Fd& listening : listener_.sockets()) polled.push_back({listening.get(), POLLIN, 0});
  if (polled.empty() && timeout_ms == 0) return {};
  ::poll(polled.data(), polled.size(), timeout_ms);
  for (size_t i = 0; i < contacts.size(); ++i) {
    if (polled[i].revents != 0) contacts[i]->serve();
  }
  for (size_t i = 0; i < listener_.sockets().size(); ++i) {
    if (polled[contacts.size() + i].revents == 0) continue;
    if (Status status = let_in(listener_.sockets()[i]); !status.ok()) return status;
  }
  return {};
}

// Of those that have not shown that they know the secret.
bool Door::drop_oldest() {
  const auto oldest = std::find_if(guests_.begin(), guests_.end(),
                                   [](const auto& guest) { return !guest->knows_secret(); });
  if (oldest == guests_.end()) return false;
  guests_.erase(oldest);
  ++turned_away_;
  return true;
}

Status Door::let_in(const Fd& listening) {
  for (size_t i = 0; i < kMaxStrangers; ++i) {
    Fd fd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
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

std::vector<std::unique_ptr<Guest>> Door::take_seated(Clock::time_point now) {
  std::vector<std::unique_ptr<Guest>> all, seated;
  all.swap(guests_);
  for (auto& guest : all) {
    const bool slow = !guest->knows_secret() && now - guest->since() > kHelloLimit;
    if (guest->failed() || slow) {
      if (!guest->knows_secret()) ++turned_away_;  // else a peer that has found a better way
    } else if (guest->state() == Guest::State::kSeated) {
      seated.push_back(std::move(guest));
    } else {
      guests_.push_back(std::move(guest));
    }
  }
  return seated;
}

}  // namespace tessera::tcp
