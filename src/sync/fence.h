// Fences that are not part of a counter operation.
#pragma once

#include <atomic>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tessera {

// Orders this thread's earlier non-temporal stores before its later stores. A release operation
// does not do that on x86: streaming stores bypass the store order it relies upon. Call once after
// the last of them, before the data is published.
inline void store_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

// Orders this thread's earlier stores before its later loads, of which no release or acquire says
// anything: for two parties who each store, then look whether the other has (of whom one must see
// the other).
inline void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace tessera
