// A slot: where a peer puts a chunk. Its header is one cache line that holds the counter of the
// put, the fingerprint of the call, and small data, so that a small put is one cache-line transfer
// (the low-latency protocol); larger data follows the header.
//
//   | counter 8 | fingerprint 8 | small data, up to 48 bytes | data, up to the slot's capacity ...
//   |
//
// Writer: wait until the slot is free (plan), write data and fingerprint, then publish the counter.
// Reader: after reached(), fingerprint and data may be read until the plan lets the writer reuse
// the slot. Fingerprint and data are plain memory: the counter's release and acquire order them.
#pragma once

#include <cstdint>

#include "sync/counter.h"

namespace tessera {

inline constexpr size_t kSmallData = 48;

struct alignas(kCacheLine) SlotHeader {
  Counter counter;
  uint64_t fingerprint;
  unsigned char small[kSmallData];
};
static_assert(sizeof(SlotHeader) == kCacheLine);

// A hint that the calling thread will write the cache line: takes it away from others.
inline void own_soon(SlotHeader* slot) {
#if defined(__x86_64__)
  // The builtin makes this instruction only for newer processors; older ones take it for none.
  asm volatile("prefetchw %0" : : "m"(*slot));
#else
  __builtin_prefetch(slot, 1);
#endif
}

// Where `bytes` bytes of data lie in the slot.
inline void* slot_data(SlotHeader* slot, size_t bytes) {
  return bytes <= kSmallData ? static_cast<void*>(slot->small) : static_cast<void*>(slot + 1);
}

}  // namespace tessera
