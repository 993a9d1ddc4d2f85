// Copies on host memory: cached for what will soon be read again, streaming (non-temporal) for what
// will not. Neither reads nor writes outside the ranges. Ranges must not overlap (equal pointers:
// nothing is done).
#pragma once

#include <cstddef>

namespace tessera::host {

void copy(void* dst, const void* src, size_t bytes);
// Streaming stores from a size that pays; ends with a store fence, so that a later release
// publishes the data.
void copy_streaming(void* dst, const void* src, size_t bytes);
// Copies to every dst, as copy_streaming does; reads src from memory once.
void copy_to_all(void* const* dsts, int num_dsts, const void* src, size_t bytes);

}  // namespace tessera::host
