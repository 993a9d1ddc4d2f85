// What a rank's memory reads and writes in one launch, counted from the plan, in rows.
//
// Counted are the tiles that the kernel stores, what the rank's steps read and write here, and what
// steps of peers write here. Two ways to count a sum:
//
//   operands  as processors add: a step reads each of its sources and writes each destination
//   merging   as memory that adds by itself (T3): what comes in is added where it is written, so a
//             step that passes a sum on reads it once, and what a rank keeps is neither read nor
//             written again
//
// A ring of n ranks, per rank and in chunks of 1/n of the matrix, sums with remote stores:
//
//                      reads    writes
//   product, then ring 2n - 1   2n        (operands)
//   fused, operands    2n - 2   2n - 1    the first hop's copy is saved
//   fused, merging     n - 2    2n - 2    T3
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "fusion/plans.h"

namespace tessera {

struct Traffic {
  uint64_t read = 0, written = 0;  // elements of the plan: rows, if `rows` are
};

enum class CountSums : uint8_t { kOperands, kMerging };

// `block`: elements of a block of the plan. `plan` is of a collective whose input is the kernel's
// (all but all-gather); `remote`, `remote_chunks` as in FusedPlanShape.
Traffic traffic_of(const Plan& plan, int rank, uint64_t block, bool remote, CountSums sums,
                   uint64_t remote_chunks = ~uint64_t{0});

}  // namespace tessera
