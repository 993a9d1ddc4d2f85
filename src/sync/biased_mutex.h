// A mutex for what one thread nearly always uses alone: while it does, locking and unlocking are
// plain stores.
//
// An ordinary unlock is an atomic read-modify-write: on x86 it waits until all earlier stores have
// left the core, those into peers' slots too, each of which fetches a line from another core. The
// owner of a biased mutex does not pay that; whoever takes the bias away pays with a system call.
//
//   bias:   never given  -->  one thread's, once it locked kStreak times in a row  -->  revoked
//
// Thread safety: lock() and unlock() from any thread; not recursive; the locking thread unlocks.
// Fairness is std::mutex's. A wait lasts as long as the holder holds.
//
// Invariants
//   (a) owner_ takes three kinds of values, in this order: kNone, one thread's number, kRevoked.
//       It is changed by holders of mutex_ only. A number is given to one thread ever.
//   (b) The owner stores inside_ = 1, then looks at owner_ again, in program order; leaving, it
//       stores inside_ = 0, then looks at owner_. Who revokes stores owner_ = kRevoked, passes the
//       kernel's membarrier, then looks at inside_. The barrier hits the owner's core either after
//       its store, and then the revoker sees the store; or before it, and then the owner's look
//       sees kRevoked. So both never believe they are in, and no wake-up of (d) is lost.
//   (c) After revocation everybody holds mutex_; the revoker holds it from before, and goes on only
//       after inside_ was 0 (acquire: sees what the owner did inside). A late inside_ = 1 by an
//       owner that had not yet seen the revocation is taken back by it at once; nobody relies on it.
//   (d) An owner that leaves and sees kRevoked wakes the revoker.
//   (e) biased_ is written and read only by the holder: how it holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tessera {

class BiasedMutex {
 public:
  constexpr BiasedMutex() = default;
  BiasedMutex(const BiasedMutex&) = delete;
  BiasedMutex& operator=(const BiasedMutex&) = delete;

  void lock();
  void unlock();

 private:
  static constexpr uint64_t kNone = 0, kRevoked = ~uint64_t{0};
  // So often in a row one thread locks before it gets the bias: who makes a communicator for
  // another thread does not.
  static constexpr int kStreak = 16;

  bool enter(uint64_t thread);
  void leave();
  void revoke();
  void grant(uint64_t thread);

  std::atomic<uint64_t> owner_{kNone};
  std::atomic<int> inside_{0};
  bool biased_ = false;
  int streak_ = 0;       // guarded by mutex_
  uint64_t latest_ = 0;  // thread that locked last; guarded by mutex_
  std::mutex mutex_;
};

}  // namespace tessera
