// The device twin of counter.h: the same 8 bytes of memory, seen from GPU code. Host ranks and GPUs
// may add to one counter.
//
// Thread safety: any number of adders and waiters, on any device or host that maps the memory.
// Guarantee: as Counter's, at system scope: what an adder wrote before publish() is visible to a
// waiter after reached() returned true. A block publishes through one thread: finish the stores,
// meet at a block barrier, then that thread calls publish() (I5). The fence makes the barrier's
// other threads part of the release.
#pragma once

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

#include <cstdint>

#include "sync/counter.h"

namespace tessera {

#if defined(__CUDACC__)
class DeviceCounter {
 public:
  __device__ void publish(uint64_t n) {
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
    Word(value_).fetch_add(n, cuda::memory_order_release);
  }

  // By the only adder.
  __device__ void publish_value(uint64_t value) {
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
    Word(value_).store(value, cuda::memory_order_release);
  }

  __device__ bool reached(uint64_t target) const { return value() >= target; }

  __device__ uint64_t value() const {
    return Word(const_cast<uint64_t&>(value_)).load(cuda::memory_order_acquire);
  }

 private:
  using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_system>;
  uint64_t value_ = 0;
};
#elif defined(__HIPCC__)
class DeviceCounter {
 public:
  __device__ void publish(uint64_t n) {
    __hip_atomic_fetch_add(&value_, n, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }

  // By the only adder.
  __device__ void publish_value(uint64_t value) {
    __hip_atomic_store(&value_, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }

  __device__ bool reached(uint64_t target) const { return value() >= target; }

  __device__ uint64_t value() const {
    return __hip_atomic_load(&value_, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
  }

 private:
  uint64_t value_ = 0;
};
#endif
#if defined(__CUDACC__) || defined(__HIPCC__)
static_assert(sizeof(DeviceCounter) == sizeof(Counter));
static_assert(alignof(DeviceCounter) == alignof(Counter));
#endif

}  // namespace tessera
