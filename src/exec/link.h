// Linking: turns a verified plan into a rank's program for slots of a given capacity.
// Pure functions; every rank that links the same plan with the same capacity gets the same region
// layout.
#pragma once

#include <cstddef>

#include "exec/program.h"
#include "plan/verifier.h"

namespace tessera {

struct LinkOptions {
  size_t slot_bytes = 0;  // largest chunk, in bytes
  // All members are known to have entered before any step runs (they announced their buffers):
  // signals whose only meaning is "I have entered" (a lane's first step, no data, no wait) and the
  // waits for them are left out.
  bool entered = false;
};

Program link(const VerifiedPlan& plan, int rank, const LinkOptions& options);

// Bytes of one member's region.
size_t region_bytes(const Program& program);

}  // namespace tessera
