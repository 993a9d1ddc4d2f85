#include "transports/tcp/links.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"

namespace tessera::tcp {
namespace {

constexpr size_t kEventsAtOnce = 64;

}  // namespace

Status Links::open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  events_.resize(kEventsAtOnce);
  if (epoll_.valid()) return {};
  return Status::error(Code::kSystem, "tcp: epoll_create1: {}", error_text(errno));
}

Status Links::add(Link& link) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = &link;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link.fd.get(), &event) == 0) return {};
  return Status::error(Code::kSystem, "tcp: epoll_ctl: {}", error_text(errno));
}

void Links::remove(Link& link) {
  if (!link.alive) return;
  link.alive = false;
  set_blocked(link, false);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.fd.get(), nullptr);
  std::erase(unsent_, &link);
  std::erase(failed_, &link);
  link.listed = false;
  link.queue.clear();
  uncopied_ -= link.zero_copy.pending();
  link.zero_copy = {};
  // Nothing queued in the kernel may reach the peer later, when the same bytes went another way.
  const linger at_once = {1, 0};
  if (!link.failure.empty())
    ::setsockopt(link.fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  link.fd.reset();
}

void Links::set_blocked(Link& link, bool blocked) {
  if (link.blocked == blocked) return;
  link.blocked = blocked;
  blocked_ += blocked ? 1 : -1;
  epoll_event event = {};
  event.events = blocked ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.ptr = &link;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd.get(), &event);
}

void Links::list(Link& link) {
  if (link.listed) return;
  link.listed = true;
  unsent_.push_back(&link);
}

bool Links::send(Link& link) {
  if (link.blocked || !link.failure.empty()) return false;
  return transmit(link);
}

bool Links::resume(Link& link) { return link.blocked && transmit(link); }

bool Links::transmit(Link& link) {
  bool moved = false;
  uncopied_ -= link.zero_copy.pending();
  const SendQueue::Outcome outcome = link.queue.send(link.fd.get(), link.zero_copy, moved);
  uncopied_ += link.zero_copy.pending();
  if (outcome == SendQueue::Outcome::kFailed) {
    link.failure = error_text(errno);
    failed_.push_back(&link);
  }
  set_blocked(link, outcome == SendQueue::Outcome::kBlocked);
  if (outcome == SendQueue::Outcome::kEmpty && link.listed) {
    link.listed = false;
    std::erase(unsent_, &link);
    std::erase(failed_, &link);
  }
  return moved;
}

void Links::settle(Link& link) {
  uncopied_ -= link.zero_copy.pending();
  link.zero_copy.settle(link.fd.get());
  uncopied_ += link.zero_copy.pending();
}

bool Links::flush() {
  bool moved = false;
  for (size_t i = unsent_.size(); i-- > 0;) {  // backwards: those that become empty leave the list
    if (send(*unsent_[i])) moved = true;
  }
  return moved;
}

std::span<const epoll_event> Links::ready() {
  const int n = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  return {events_.data(), static_cast<size_t>(std::max(n, 0))};
}

std::vector<Link*> Links::take_failed() { return std::exchange(failed_, {}); }

}  // namespace tessera::tcp
