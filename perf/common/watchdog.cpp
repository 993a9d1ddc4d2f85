#include "common/watchdog.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/outcome.h"

namespace tessera::perf {

Watchdog::Watchdog(std::chrono::seconds timeout, int threads)
    : timeout_(timeout), deadlines_(static_cast<size_t>(threads), Clock::time_point::max()) {
  if (timeout_.count() > 0) guard_ = std::thread([this] { guard(); });
}

Watchdog::~Watchdog() {
  if (!guard_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_all();
  guard_.join();
}

void Watchdog::watch(std::vector<ncclComm_t> comms) {
  const std::lock_guard lock(mutex_);
  comms_ = std::move(comms);
}

void Watchdog::enter(int thread) {
  if (timeout_.count() == 0) return;
  const std::lock_guard lock(mutex_);
  deadlines_[static_cast<size_t>(thread)] = Clock::now() + timeout_;
}

void Watchdog::leave(int thread) {
  if (timeout_.count() == 0) return;
  const std::lock_guard lock(mutex_);
  deadlines_[static_cast<size_t>(thread)] = Clock::time_point::max();
}

bool Watchdog::expired() {
  const std::lock_guard lock(mutex_);
  return expired_;
}

void Watchdog::guard() {
  constexpr std::chrono::milliseconds kPeriod(50);
  constexpr std::chrono::seconds kGrace(5);  // for the blocked call to return after the abort
  std::unique_lock lock(mutex_);
  while (!stop_) {
    stop_signal_.wait_for(lock, kPeriod);
    if (*std::min_element(deadlines_.begin(), deadlines_.end()) > Clock::now()) continue;
    expired_ = true;
    const std::vector<ncclComm_t> comms = comms_;
    lock.unlock();
    for (ncclComm_t comm : comms) static_cast<void>(ncclCommAbort(comm));
    lock.lock();
    stop_signal_.wait_for(lock, kGrace, [this] { return stop_; });
    if (!stop_) fail(kTimeout, "a call took longer than -T allows and did not end when aborted");
  }
}

}  // namespace tessera::perf
