// The registry of communicator handles.
//
// An ncclComm_t is a number: a tag in the upper 16 bits (never an address), the generation of a
// slot, the slot. Slots are static and never freed, so a handle that is stale or garbage is
// recognised without touching foreign memory (I11).
//
// Each slot has two locks, taken in this order:
//   call   held during a call: at most one thread is inside a communicator. Held for as long as the
//   operation takes. state  held for moments. ncclCommAbort, ncclCommRevoke and
//   ncclCommGetAsyncError use it alone to reach the communicator.
// The generation changes under both.
//
// Fork: in the child every live slot is marked; calls on its communicators return kInvalidUsage.
#pragma once

#include <nccl.h>

#include <memory>
#include <mutex>
#include <optional>

#include "api/comm_state.h"
#include "sync/biased_mutex.h"

namespace tessera::api {

inline constexpr int kHandleTagShift = 48;
inline constexpr uint64_t kCommTag = 0x7ec0;
inline constexpr uint64_t kStreamTag = 0x7ec1;
inline constexpr uint64_t kWindowTag = 0x7ec2;
inline constexpr uint64_t kBufferTag = 0x7ec3;
inline constexpr uint64_t kFusedTag = 0x7ec4;
inline constexpr uint32_t kMaxComms = 1u << 14;

struct Slot {
  BiasedMutex call;
  std::mutex state;
  uint32_t generation = 0;
  bool live = false;
  bool forked = false;
  std::shared_ptr<CommState> comm;
};

// A communicator with its call lock held.
class CommLock {
 public:
  // Waits until no other thread is inside.
  static Result<CommLock> acquire(ncclComm_t handle, const char* function);
  // The same without a text: none when the handle has ended.
  static std::optional<CommLock> find(ncclComm_t handle);

  CommState* operator->() const { return slot_->comm.get(); }
  CommState& operator*() const { return *slot_->comm; }
  const std::shared_ptr<CommState>& shared() const { return slot_->comm; }

  // Changes what both locks guard.
  template <class Change>
  void update(Change&& change) {
    const std::lock_guard lock(slot_->state);
    change(*slot_->comm);
  }
  // Ends the handle; every later use of it fails. The lock is gone afterwards.
  std::shared_ptr<CommState> release();

 private:
  CommLock(Slot* slot, std::unique_lock<BiasedMutex> lock) : slot_(slot), lock_(std::move(lock)) {}
  Slot* slot_;
  std::unique_lock<BiasedMutex> lock_;
};

// The communicator without its call lock: any thread, never waits for a call.
struct CommView {
  std::shared_ptr<CommState> state;
  std::shared_ptr<Communicator> comm;  // null while initialising
  Phase phase;
  Status init_error;
};
Result<CommView> view(ncclComm_t handle, const char* function);

// A handle for a new communicator. kSystem when kMaxComms are live.
Result<ncclComm_t> add_comm(std::shared_ptr<CommState> state);
// Ends the handle of a communicator that never became ready, if it still exists.
void drop_comm(ncclComm_t handle);

// Installs the fork handler, once. Called by whatever makes the first handle.
void watch_forks();

// Slot number of a handle, for ids that should differ between communicators.
uint32_t slot_number(ncclComm_t handle);

}  // namespace tessera::api
