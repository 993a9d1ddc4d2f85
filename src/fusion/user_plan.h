// Plans that users bring to fused operators, in place of those of plans.h.
//
// What ties such a plan to tiles are the numbers of its counters, the same at every rank:
//
//   0, 1, ...   external: of chunk 0, 1, ... of the rank's input, as many as have rows. Arrivals:
//               the tiles that touch the chunk, once each. An all-gather has none
//   next        of chunk 0, 1, ... of the rank's output: raised once a pass, when it is there
//   next        the plan's own
//
// Chunks are the plan's, in the order of the matrix's rows (geometry.h): those of the input of an
// all-to-all or a reduce-scatter are first all that go to rank 0, then to rank 1, and so on; an
// all-reduce has one block, of whose chunks each rank owns an equal number.
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "fusion/description.h"
#include "fusion/geometry.h"
#include "plan/verifier.h"

namespace tessera {

// A number that tells plans apart; never 0.
uint64_t fingerprint(const Plan& plan);

struct Adopted {
  FusedDescription description;  // complete; chunks are the plan's, `plan` its fingerprint
  VerifiedPlan plan;
};

// Proves that the plan computes what the description says, driven by its tiles (plan/gates.h).
// `wish.chunks` is 0 or what the plan has; mapping and remote stores are taken back. `host_of`: of
// each rank; empty: all on one. kInvalidArgument names the place.
Result<Adopted> adopt(Plan plan, FusedDescription wish, int ranks, int rank,
                      const std::vector<int>& host_of);

}  // namespace tessera
