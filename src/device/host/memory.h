// Host memory that peers can map: one memfd per allocation, page aligned, zeroed. What ncclMemAlloc
// returns. The registry of live allocations is process-wide (the handle registry of I11); lookups
// by address are cheap and thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace tessera::host {

struct Allocation {
  void* base = nullptr;
  size_t bytes = 0;
  int fd = -1;      // owned by the registry; valid while the allocation lives
  uint64_t id = 0;  // never reused within the process
};

// bytes > 0. kSystem with needed and available amounts when memory is short (checked before use, so
// that no later touch faults).
Result<void*> memory_allocate(size_t bytes);
// The pointer memory_allocate returned; anything else is kInvalidArgument.
Status memory_free(void* pointer);
// The allocation that holds [pointer, pointer + bytes) entirely; .base == nullptr when there is
// none.
Allocation memory_find(const void* pointer, size_t bytes);

}  // namespace tessera::host
