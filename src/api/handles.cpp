#include "api/handles.h"

#include <pthread.h>

#include <array>
#include <new>
#include <vector>

#include "api/errors.h"
#include "api/fused.h"

namespace tessera::api {
namespace {

// Never destroyed: communicators may be in use while the process ends.
template <class T>
union Immortal {
  constexpr Immortal() : value() {}
  constexpr ~Immortal() {}
  T value;
};

struct Registry {
  std::mutex mutex;
  std::array<Slot, kMaxComms> slots;
  std::vector<uint32_t> free;
  uint32_t used = 0;  // slots that were ever live
};

constinit Immortal<Registry> g_registry;

constexpr int kGenerationShift = 16;

ncclComm_t encode(uint32_t index, uint32_t generation) {
  return reinterpret_cast<ncclComm_t>(kCommTag << kHandleTagShift |
                                      uint64_t{generation} << kGenerationShift | index);
}

uint32_t generation_of(ncclComm_t handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) >> kGenerationShift);
}

// Null unless the value may be a handle. Reads no memory but the registry's.
Slot* slot_of(ncclComm_t handle) {
  const uint64_t value = reinterpret_cast<uintptr_t>(handle);
  const uint32_t index = value & 0xffff;
  if (value >> kHandleTagShift != kCommTag || index >= kMaxComms) return nullptr;
  return &g_registry.value.slots[index];
}

Status no_such_comm(ncclComm_t handle, const char* function) {
  if (handle == nullptr) return fail(Code::kInvalidArgument, "{}: comm is NULL", function);
  return fail(Code::kInvalidArgument,
              "{}: comm {} is not a communicator, or was destroyed or aborted", function,
              static_cast<const void*>(handle));
}

Status from_before_fork(const char* function) {
  return fail(Code::kInvalidUsage,
              "{}: the communicator was created before fork; it works in the parent process only. "
              "Create communicators after the fork.",
              function);
}

bool matches(const Slot& slot, ncclComm_t handle) {
  return slot.live && slot.generation == generation_of(handle);
}

void release_locked(Slot* slot, std::shared_ptr<CommState>* state) {
  const std::lock_guard lock(slot->state);
  ++slot->generation;
  slot->live = false;
  *state = std::move(slot->comm);
}

void give_back(Slot* slot) {
  Registry& all = g_registry.value;
  const std::lock_guard lock(all.mutex);
  all.free.push_back(static_cast<uint32_t>(slot - all.slots.data()));
}

// Runs in the only thread of the child. Locks may be held, and objects half changed, by threads
// that do not exist here: nothing is unlocked, read or destroyed, everything is left behind.
void mark_slots_after_fork() {
  Registry& all = g_registry.value;
  new (&all.mutex) std::mutex;
  for (uint32_t i = 0; i < all.used; ++i) {
    Slot& slot = all.slots[i];
    new (&slot.call) BiasedMutex;
    new (&slot.state) std::mutex;
    new (&slot.comm) std::shared_ptr<CommState>;
    slot.forked = slot.live;
  }
  // Only untouched slots serve the child: a free list that was being changed cannot be trusted.
  new (&all.free) std::vector<uint32_t>;
  forget_streams_after_fork();
  forget_cliques_after_fork();
  forget_fused_after_fork();
}

}  // namespace

std::string CommState::label() const {
  const std::string rank = comm == nullptr ? "" : fmt::format(" rank {}", comm->rank());
  if (settings.comm_name.empty()) return "communicator" + rank;
  return fmt::format("communicator \"{}\"{}", settings.comm_name, rank);
}

void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, mark_slots_after_fork);
  static_cast<void>(once);
}

uint32_t slot_number(ncclComm_t handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) & 0xffff);
}

Result<CommLock> CommLock::acquire(ncclComm_t handle, const char* function) {
  Slot* const slot = slot_of(handle);
  if (slot == nullptr) return no_such_comm(handle, function);
  std::unique_lock lock(slot->call);
  if (!matches(*slot, handle)) return no_such_comm(handle, function);
  if (slot->forked) return from_before_fork(function);
  return CommLock(slot, std::move(lock));
}

std::optional<CommLock> CommLock::find(ncclComm_t handle) {
  Slot* const slot = slot_of(handle);
  if (slot == nullptr) return std::nullopt;
  std::unique_lock lock(slot->call);
  if (!matches(*slot, handle) || slot->forked) return std::nullopt;
  return CommLock(slot, std::move(lock));
}

std::shared_ptr<CommState> CommLock::release() {
  std::shared_ptr<CommState> state;
  release_locked(slot_, &state);
  lock_.unlock();
  give_back(slot_);
  return state;
}

Result<CommView> view(ncclComm_t handle, const char* function) {
  Slot* const slot = slot_of(handle);
  if (slot == nullptr) return no_such_comm(handle, function);
  const std::lock_guard lock(slot->state);
  if (!matches(*slot, handle)) return no_such_comm(handle, function);
  if (slot->forked) return from_before_fork(function);
  const CommState& state = *slot->comm;
  return CommView{slot->comm, state.comm, state.phase, state.init_error};
}

Result<ncclComm_t> add_comm(std::shared_ptr<CommState> state) {
  watch_forks();
  Registry& all = g_registry.value;
  uint32_t index;
  {
    const std::lock_guard lock(all.mutex);
    if (!all.free.empty()) {
      index = all.free.back();
      all.free.pop_back();
    } else if (all.used < kMaxComms) {
      index = all.used++;
    } else {
      return fail(Code::kSystem,
                  "{} communicators are live in this process, the most there can be. Destroy some "
                  "with ncclCommDestroy.",
                  kMaxComms);
    }
  }
  Slot& slot = all.slots[index];
  const std::lock_guard call_lock(slot.call);
  const std::lock_guard state_lock(slot.state);
  state->operations = Operations(index);
  slot.comm = std::move(state);
  slot.live = true;
  return encode(index, slot.generation);
}

void drop_comm(ncclComm_t handle) {
  std::optional<CommLock> lock = CommLock::find(handle);
  if (lock.has_value()) lock->release();
}

}  // namespace tessera::api
