// A device space: one thread block runs one lane. All threads of the block take the same path
// through the interpreter; they meet where a counter is looked at, where one is raised, and around
// each move. For CUDA and HIP.
//
// Compiled by `device_check`, so that interpreter, program and counters stay valid device code. It
// reduces by addition.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/interpreter.h"
#include "sync/counter_device.h"
#include "sync/slot.h"

namespace tessera::device_check {

// The host's SlotHeader with a device's view of its counter.
struct BlockSlot {
  DeviceCounter counter;
  uint64_t fingerprint;
  unsigned char small[kSmallData];
};
static_assert(sizeof(BlockSlot) == sizeof(SlotHeader));

inline constexpr uint32_t kMaxOperands = 64;

// What the threads of a block share: lives in the block's shared memory.
struct BlockState {
  std::byte* places[kMaxOperands];
  uint16_t raw[kMaxOperands];
  uint16_t members[kMaxOperands];
  uint64_t value;
};

template <class T>
class BlockSpace {
 public:
  using Counter = DeviceCounter;
  using SlotHeader = BlockSlot;
  using Place = std::byte*;

  __device__ explicit BlockSpace(BlockState& state) : state_(state) {}

  __device__ void meet() const { device::Block().meet(); }

  // The barrier gives every thread the same answer, and what thread 0 acquired.
  __device__ bool reached(const Counter& counter, uint64_t target) const {
    return __syncthreads_or(threadIdx.x == 0 && counter.reached(target)) != 0;
  }

  // Blocks spin and nobody sleeps: there is no one to wake.
  __device__ void publish(uint16_t, Counter& counter, uint64_t n) {
    meet();
    if (threadIdx.x == 0) counter.publish(n);
  }
  __device__ void publish_value(uint16_t, Counter& counter, uint64_t value) {
    meet();
    if (threadIdx.x == 0) counter.publish_value(value);
  }
  __device__ void publish_slot(uint16_t member, BlockSlot* slot, uint64_t value,
                               uint64_t fingerprint) {
    if (threadIdx.x == 0) slot->fingerprint = fingerprint;
    publish_value(member, slot->counter, value);
  }

  __device__ uint64_t value(const Counter& counter) const {
    if (threadIdx.x == 0) state_.value = counter.value();
    __syncthreads();
    const uint64_t value = state_.value;
    __syncthreads();  // the next look overwrites it
    return value;
  }

  __device__ void expect(const SlotHeader*, size_t) const {}
  __device__ void own_next(uint16_t, SlotHeader*, size_t) const {}
  __device__ void pause() const {}
  __device__ Place place(void* pointer) const { return static_cast<Place>(pointer); }
  __device__ void* small_or_data(BlockSlot* slot, size_t bytes) const {
    return bytes <= kSmallData ? static_cast<void*>(slot->small) : static_cast<void*>(slot + 1);
  }

  // All threads write the same values.
  __device__ Place* places() { return state_.places; }
  __device__ uint16_t* raw() { return state_.raw; }
  __device__ uint16_t* members() { return state_.members; }

  __device__ bool combine(const Operands<Place>& operands) {
    __syncthreads();
    for (size_t i = threadIdx.x; i < operands.elements; i += blockDim.x) {
      T value = reinterpret_cast<const T*>(operands.srcs[0])[i];
      if (operands.reduce) {
        for (uint32_t s = 1; s < operands.num_srcs; ++s)
          value += reinterpret_cast<const T*>(operands.srcs[s])[i];
      }
      for (uint32_t d = 0; d < operands.num_dsts; ++d)
        reinterpret_cast<T*>(operands.dsts[d])[i] = value;
    }
    __syncthreads();  // the next move overwrites places()
    return true;
  }

 private:
  BlockState& state_;
};

// Block b runs lane b to its end.
template <class T>
__device__ void run_lane(const ProgramView& program, const Run<BlockSpace<T>>& run,
                         Progress* outcome) {
  __shared__ BlockState state;
  BlockSpace<T> space(state);
  Interpreter<BlockSpace<T>> interpreter(program, run, space);
  LaneCursor cursor;
  Progress progress = Progress::kBlocked;
  while (progress == Progress::kBlocked)
    progress = interpreter.advance(blockIdx.x, cursor, 1 << 20);
  if (threadIdx.x == 0) outcome[blockIdx.x] = progress;
}

}  // namespace tessera::device_check
