// Which algorithm, protocol and slice size a call gets. All ranks must choose alike: the choice
// depends only on what all of them know.
//
// Two ways to run a call:
//   eager    small: no rendezvous. A staged plan whose puts carry the call's fingerprint; everyone
//            may start at once.
//   bulk     all ranks first announce their call and buffers to each other, then choose with
//            knowledge of all buffers: a direct plan between user buffers, or a staged plan in
//            slices through shared memory.
// Costs and thresholds were measured on host memory (see docs/tuning.md); TESSERA_ALGO,
// TESSERA_LL_MAX and TESSERA_SLICE_BYTES override them.
#pragma once

#include <cstddef>

#include "algorithms/algorithms.h"
#include "base/config.h"
#include "base/status.h"

namespace tessera {

// How user buffers of all ranks can be reached.
enum class Access : uint8_t {
  kNone,        // only by their owner
  kSingleCopy,  // through the kernel
  kMapped,      // load and store
};

// What all ranks know of the place they run in.
struct Site {
  int ranks = 1;
  bool crowded = false;  // more ranks than cores: meeting costs context switches
};

// A bulk call, as all ranks know it once they have announced their buffers.
struct BulkCall {
  Collective collective = Collective::kBarrier;
  size_t block_bytes = 0;
  Access access = Access::kNone;
  bool root_copies = false;  // the root is not in place: it has a copy of its own to make
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  // capacity of a scratch slot, which bounds a slice's chunks; 0 for direct plans: one pass moves
  // all
  size_t slot_bytes = 0;
  int depth = 2;  // copies of scratch
};

// Largest block, in bytes, that runs eagerly.
size_t eager_max(Collective collective, const Site& site, const Config& config);
Result<Choice> choose_eager(Collective collective, const Site& site, const Config& config);
// Copies of so many bytes had better be written past the caches, in a call whose output is
// `output_bytes` on this rank. Ranks may differ.
size_t streamed_from(Collective collective, const Site& site, size_t output_bytes, bool in_place);
Result<Choice> choose_bulk(const BulkCall& call, const Site& site, const Config& config);

}  // namespace tessera
