// The rules by which calls are run where nothing was measured: thresholds that hold on common
// hosts. docs/tuning.md tells where they come from.
//
// Two ways to run a call:
//   eager    small: no rendezvous. A staged plan whose puts carry the call's fingerprint; everyone
//            may start at once.
//   bulk     all ranks first announce their call and buffers to each other, then choose with
//            knowledge of all buffers: a direct plan between user buffers, or a staged plan in
//            slices through shared memory.
// Thread safety: pure functions.
#pragma once

#include "tuner/candidate.h"

namespace tessera {

// Largest block, in bytes, that runs eagerly; TESSERA_LL_MAX overrides it.
size_t eager_max(Collective collective, const Site& site, const Config& config);
Candidate eager_default(Collective collective, const Site& site);
Candidate bulk_default(const BulkCall& call, const Site& site);

// Copies of so many bytes had better be written past the caches, in a call whose output is
// `output_bytes` on this rank. Ranks may differ.
size_t streamed_from(Collective collective, const Site& site, size_t output_bytes, bool in_place);

}  // namespace tessera
