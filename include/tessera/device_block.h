// What a thread block of a GPU does besides its work: it looks at 64-bit words of memory that others
// write, too, raises them, meets, and reads the time. For CUDA (sm_70 or later) and HIP; for a host
// compiler this header is empty. The atomics of device code live here and nowhere else.
//
// Scope: the whole system. Words may be raised by several devices and the host where the platform
// has atomics between them; see tile_device.h.
// Thread safety: Words from any thread. A Block's meet() and tell() by all threads of the block, in
// the same order; the rest by any thread of it.
#ifndef TESSERA_DEVICE_BLOCK_H_
#define TESSERA_DEVICE_BLOCK_H_

#include <stdint.h>

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

#if defined(__CUDACC__) || defined(__HIPCC__)

namespace tessera::device {

#if defined(__CUDACC__)
class Words {
 public:
  // Acquire: pairs with the release of every addition that the value includes.
  static __device__ uint64_t acquire(const uint64_t* word) {
    return Atomic(*const_cast<uint64_t*>(word)).load(cuda::memory_order_acquire);
  }
  // Release of what this thread wrote, and of what it knows from others by a barrier: that is what
  // the fence is for.
  static __device__ void add(uint64_t* word, uint64_t n) {
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
    Atomic(*word).fetch_add(n, cuda::memory_order_release);
  }
  // The same, by the only writer.
  static __device__ void store(uint64_t* word, uint64_t value) {
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
    Atomic(*word).store(value, cuda::memory_order_release);
  }
  // Adds 1 and returns the sum; 0, and adds nothing, if the word is at `limit` already. Release, and
  // acquire of the additions before.
  static __device__ uint64_t add_below(uint64_t* word, uint64_t limit) {
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
    uint64_t now = Atomic(*word).load(cuda::memory_order_relaxed);  // the exchange checks it
    do {
      if (now >= limit) return 0;
    } while (!Atomic(*word).compare_exchange_weak(now, now + 1, cuda::memory_order_acq_rel,
                                                  cuda::memory_order_relaxed));
    return now + 1;
  }

 private:
  using Atomic = cuda::atomic_ref<uint64_t, cuda::thread_scope_system>;
};

// ns; advances in steps of up to 1 us.
static __device__ inline uint64_t now_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
static __device__ inline void pause() { __nanosleep(100); }

#else
class Words {  // orders as above
 public:
  static __device__ uint64_t acquire(const uint64_t* word) {
    return __hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  static __device__ void add(uint64_t* word, uint64_t n) {
    __hip_atomic_fetch_add(word, n, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  static __device__ void store(uint64_t* word, uint64_t value) {
    __hip_atomic_store(word, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  static __device__ uint64_t add_below(uint64_t* word, uint64_t limit) {
    uint64_t now = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    do {
      if (now >= limit) return 0;
    } while (!__hip_atomic_compare_exchange_weak(word, &now, now + 1, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM));
    return now + 1;
  }
};

// ns, if the constant clock ticks at 100 MHz, as it does nominally; it only bounds waits.
static __device__ inline uint64_t now_ns() { return __builtin_amdgcn_s_memrealtime() * 10; }
static __device__ inline void pause() { __builtin_amdgcn_s_sleep(1); }
#endif

class Block {
 public:
  using Words = device::Words;

  // What a thread stored before is stored before what any thread of the block does after it.
#if defined(__CUDACC__)
  __device__ void meet() { __syncthreads(); }
#else
  // The barrier orders stores for the block only: those of other waves may still be on their way to
  // the device's memory when the leader releases its own.
  __device__ void meet() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    __syncthreads();
  }
#endif
  __device__ bool leads() const { return threadIdx.x + threadIdx.y + threadIdx.z == 0; }
  // The leader's value, to all; the others' do not matter. Meets.
  __device__ int tell(int value) {
    __shared__ int told;
    if (leads()) told = value;
    __syncthreads();
    const int all = told;
    __syncthreads();  // the next call overwrites it
    return all;
  }
  __device__ uint64_t now_ns() const { return device::now_ns(); }
  __device__ void pause() const { device::pause(); }
};

}  // namespace tessera::device

#endif

#endif  // TESSERA_DEVICE_BLOCK_H_
