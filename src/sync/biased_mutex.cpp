#include "sync/biased_mutex.h"

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "sync/barrier.h"

namespace tessera {
namespace {

// 1, 2, ...: never given twice, unlike the system's thread ids.
uint64_t this_thread() {
  static std::atomic<uint64_t> last{0};
  // initial-exec: read without a call, also in a shared library
  [[gnu::tls_model("initial-exec")]] static constinit thread_local uint64_t number = 0;
  // relaxed: only the value counts
  if (number == 0) number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

// Relaxed: (b) orders the two with the compiler's fence here and the revoker's barrier.
bool BiasedMutex::enter(uint64_t thread) {
  if (owner_.load(std::memory_order_relaxed) != thread) return false;
  inside_.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (owner_.load(std::memory_order_relaxed) == thread) {
    biased_ = true;
    return true;
  }
  leave();  // (c)
  return false;
}

// Release: who revokes sees all that was done inside (c).
void BiasedMutex::leave() {
  inside_.store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (owner_.load(std::memory_order_relaxed) != kRevoked) return;  // (b)
  // (d); the fence: the library's notify looks for waiters without one of its own
  std::atomic_thread_fence(std::memory_order_seq_cst);
  inside_.notify_all();
}

void BiasedMutex::lock() {
  const uint64_t thread = this_thread();
  if (enter(thread)) return;
  mutex_.lock();
  const uint64_t owner = owner_.load(std::memory_order_relaxed);  // changes under mutex_ only (a)
  if (owner == kNone) {
    grant(thread);
  } else if (owner != kRevoked) {
    revoke();
  }
}

void BiasedMutex::unlock() {
  if (biased_) {
    biased_ = false;
    leave();
  } else {
    mutex_.unlock();
  }
}

// Counts this lock; the bias holds from the next one on. Without the barrier of (b) never given.
void BiasedMutex::grant(uint64_t thread) {
  streak_ = thread == latest_ ? streak_ + 1 : 1;
  latest_ = thread;
  if (streak_ < kStreak) return;
  streak_ = 0;
  // others only compare it with their own numbers
  if (process_barrier()) owner_.store(thread, std::memory_order_relaxed);
}

void BiasedMutex::revoke() {
  owner_.store(kRevoked, std::memory_order_relaxed);  // ordered by the barrier (b)
  // It worked when the bias was given. Without it nobody may enter; a sandbox that was put up
  // since then leaves no other way.
  while (!process_barrier()) {
    if (errno != ENOMEM) std::abort();
    std::this_thread::yield();
  }
  for (int inside = inside_.load(std::memory_order_acquire); inside != 0;
       inside = inside_.load(std::memory_order_acquire)) {
    inside_.wait(inside, std::memory_order_acquire);
  }
}

}  // namespace tessera
