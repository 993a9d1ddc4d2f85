#include "sync/counter.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "sync/barrier.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace tessera {
namespace {

timespec to_timespec(std::chrono::nanoseconds duration) {
  return {static_cast<time_t>(duration.count() / 1'000'000'000),
          static_cast<long>(duration.count() % 1'000'000'000)};
}

// The kernel's futex_waitv element, declared here since older headers lack it.
struct WaitElement {
  uint64_t value;
  uint64_t address;
  uint32_t flags;
  uint32_t reserved;
};
constexpr uint32_t kFutex32 = 2;  // FUTEX2_SIZE_U32, shared between processes

}  // namespace

uint32_t Doorbell::announce(uint32_t sleepers) {
  sleepers_.fetch_add(sleepers, std::memory_order_seq_cst);
  const uint32_t ticket = bells_.load(std::memory_order_acquire);
  global_barrier();  // (b)
  return ticket;
}

bool Doorbell::wake() {
  bells_.fetch_add(1, std::memory_order_seq_cst);                       // (d)
  const uint32_t sleepers = sleepers_.load(std::memory_order_relaxed);  // as in ring(), (c)
  if (sleepers % kPolling != 0)
    syscall(SYS_futex, &bells_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return sleepers >= kPolling;
}

// An eventfd remembers: a poke between prepare_poll() and poll() is not lost.
void poke(int event) {
  const uint64_t one = 1;
  if (event >= 0) static_cast<void>(::write(event, &one, sizeof one));
}

void sleep_any(const Sleeper* sleepers, int count, std::chrono::nanoseconds timeout) {
  if (count == 0) return;
  if (!has_global_barrier()) timeout = std::min<std::chrono::nanoseconds>(timeout, kCautiousSleep);
  if (count > 1 && count <= kMaxSleepers) {
    WaitElement elements[kMaxSleepers];
    for (int i = 0; i < count; ++i) {
      elements[i] = {sleepers[i].ticket, reinterpret_cast<uint64_t>(&sleepers[i].doorbell->bells_),
                     kFutex32, 0};
    }
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto until =
        std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) + timeout;
    const timespec at = to_timespec(until);
    if (syscall(SYS_futex_waitv, elements, count, 0, &at, CLOCK_MONOTONIC) >= 0 ||
        (errno != ENOSYS && errno != EPERM))
      return;
  }
  if (count > 1) timeout = std::min<std::chrono::nanoseconds>(timeout, kCautiousSleep);
  const timespec relative = to_timespec(timeout);
  syscall(SYS_futex, &sleepers[0].doorbell->bells_, FUTEX_WAIT, sleepers[0].ticket, &relative,
          nullptr, 0);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void yield() { sched_yield(); }

int current_processor() { return sched_getcpu(); }

}  // namespace tessera
