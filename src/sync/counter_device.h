// The device twin of counter.h: the same 8 bytes of memory, seen from GPU code. Host ranks and GPUs
// may add to one counter.
//
// Thread safety: any number of adders and waiters, on any device or host that maps the memory.
// Guarantee: as Counter's, at system scope: what an adder wrote before publish() is visible to a
// waiter after reached() returned true. A block publishes through one thread: finish the stores,
// meet at a block barrier, then that thread calls publish() (I5).
#pragma once

#include <tessera/device_block.h>

#include <cstdint>

#include "sync/counter.h"

namespace tessera {

#if defined(__CUDACC__) || defined(__HIPCC__)
class DeviceCounter {
 public:
  __device__ void publish(uint64_t n) { device::Words::add(&value_, n); }
  // By the only adder.
  __device__ void publish_value(uint64_t value) { device::Words::store(&value_, value); }
  __device__ bool reached(uint64_t target) const { return value() >= target; }
  __device__ uint64_t value() const { return device::Words::acquire(&value_); }

 private:
  uint64_t value_ = 0;
};
static_assert(sizeof(DeviceCounter) == sizeof(Counter));
static_assert(alignof(DeviceCounter) == alignof(Counter));
#endif

}  // namespace tessera
