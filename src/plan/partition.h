// Cuts a slice of a block into chunks. Boundaries are multiples of a cache line's worth of elements
// (counted from the slice's start), so that aligned buffers have aligned chunks; the first chunks
// are the larger ones; trailing chunks may be empty. Pure functions, also for devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

struct ChunkRange {
  size_t begin, length;  // elements, from the start of the slice
};

// Elements that chunk boundaries are multiples of. Elements may be large: rows of a matrix, say.
constexpr size_t chunk_unit(size_t element_bytes) {
  return element_bytes >= 64 ? 1 : 64 / element_bytes;
}

constexpr ChunkRange chunk_range(size_t length, uint32_t chunks, uint32_t chunk, size_t unit) {
  if (chunks == 1) return {0, length};
  const size_t units = (length + unit - 1) / unit;
  const size_t each = units / chunks, extra = units % chunks;
  const size_t first = each * chunk + (chunk < extra ? chunk : extra);
  const size_t last = first + each + (chunk < extra ? 1 : 0);
  const size_t begin = first * unit < length ? first * unit : length;
  const size_t end = last * unit < length ? last * unit : length;
  return {begin, end - begin};
}

// Largest chunk of a slice of `length` elements, in elements.
constexpr size_t largest_chunk(size_t length, uint32_t chunks, size_t unit) {
  return chunk_range(length, chunks, 0, unit).length;
}

}  // namespace tessera
