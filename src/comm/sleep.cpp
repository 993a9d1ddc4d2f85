#include "comm/sleep.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

namespace tessera {
namespace {

timespec to_timespec(std::chrono::nanoseconds duration) {
  return {static_cast<time_t>(duration.count() / 1'000'000'000),
          static_cast<long>(duration.count() % 1'000'000'000)};
}

// Until something comes by the passing of time.
std::chrono::nanoseconds due_in(std::span<const Core* const> cores) {
  auto due = std::chrono::nanoseconds::max();
  for (const Core* core : cores) {
    if (core->ports) due = std::min(due, core->ports->due_in());
  }
  return due;
}

class Outside {
 public:
  explicit Outside(std::span<const Core* const> cores) : cores_(cores) {
    for (const Core* core : cores_)
      if (core->ports) core->ports->unlock();
  }
  ~Outside() {
    for (const Core* core : cores_)
      if (core->ports) core->ports->lock();
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  std::span<const Core* const> cores_;
};

}  // namespace

bool drive_others(std::span<const Core* const> cores) {
  bool moved = false;
  for (const Core* core : cores) moved = core->driven.drive() || moved;
  return moved;
}

void yield_outside(std::span<const Core* const> cores) {
  const Outside outside(cores);
  if (!drive_others(cores)) yield();
}

PortSleep::PortSleep(std::span<const Core* const> cores)
    : all_(cores), cores_(cores.first(std::min<size_t>(cores.size(), kMost))) {
  for (const Core* core : cores_) polls_ = polls_ || (core->ports && core->ports->wait_fd() >= 0);
  for (size_t i = 0; i < cores_.size(); ++i) {
    Doorbell& doorbell = cores_[i]->area().doorbell;
    sleepers_[i] = {&doorbell, polls_ ? doorbell.prepare_poll() : doorbell.prepare()};
  }
}

PortSleep::~PortSleep() {
  for (size_t i = 0; i < cores_.size(); ++i) {
    Doorbell& doorbell = *sleepers_[i].doorbell;
    polls_ ? doorbell.cancel_poll() : doorbell.cancel();
  }
}

bool PortSleep::soon(std::span<const Core* const> cores) {
  return cores.front()->alarm.nap(due_in(cores)).count() == 0;
}

void PortSleep::sleep() {
  Alarm& alarm = cores_.front()->alarm;
  const std::chrono::nanoseconds due = due_in(cores_), nap = alarm.nap(due);
  if (nap.count() == 0) return;
  if (nap > Idle::kLongestSleep) return wait(Idle::kLongestSleep);
  const SharpTimer sharp;
  const auto begin = std::chrono::steady_clock::now();
  wait(nap);
  alarm.slept(nap, std::chrono::steady_clock::now() - begin);
}

void PortSleep::wait(std::chrono::nanoseconds most) {
  if (all_.size() > cores_.size()) most = std::min<std::chrono::nanoseconds>(most, kCautiousSleep);
  if (!polls_) {
    const Outside outside(all_);
    if (drive_others(all_)) return;
    return sleep_any(sleepers_, static_cast<int>(cores_.size()), most);
  }
  pollfd polled[2 * kMost];
  nfds_t count = 0;
  for (const Core* core : cores_) {
    if (core->ports) polled[count++] = {core->ports->wait_fd(), POLLIN, 0};
    const int poke = core->ways[core->rank].poke;
    polled[count++] = {poke, POLLIN, 0};
    // Neighbours that cannot poke this rank make it look often.
    if (poke < 0) most = std::min<std::chrono::nanoseconds>(most, kCautiousSleep);
  }
  const timespec timeout = to_timespec(most);
  const Outside outside(all_);
  if (drive_others(all_)) return;
  ::ppoll(polled, count, &timeout, nullptr);
  for (const pollfd& p : std::span(polled, count)) {
    uint64_t pokes;
    const bool poked = (p.revents & POLLIN) != 0;
    for (const Core* core : cores_) {
      if (poked && p.fd == core->ways[core->rank].poke)
        static_cast<void>(::read(p.fd, &pokes, sizeof pokes));
    }
  }
}

}  // namespace tessera
