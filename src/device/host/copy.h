// Copies on host memory: through the caches for what will soon be read again, past them
// (non-temporal stores) for what will not. Neither reads nor writes outside the ranges. Ranges must
// not overlap (equal pointers: nothing is done).
#pragma once

#include <cstddef>

namespace tessera::host {

void copy(void* dst, const void* src, size_t bytes);
// Ends with a store fence, so that a later release publishes the data.
void copy_past_caches(void* dst, const void* src, size_t bytes);
// Copies to every dst; reads src from memory once.
void copy_to_all(void* const* dsts, int num_dsts, const void* src, size_t bytes, bool past_caches);

}  // namespace tessera::host
