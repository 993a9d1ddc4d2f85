// Shapes of collectives: blocks in and out of each rank, required contributions, and what aliases
// what in place. Pure functions. `root` is ignored where the collective has none. A block is
// `count` elements of the call.
#pragma once

#include "base/types.h"

namespace tessera {

// Blocks of the input / output buffer of `rank`; 0 where the call does not touch that buffer.
int input_blocks(Collective collective, int ranks, int root, int rank);
int output_blocks(Collective collective, int ranks, int root, int rank);

// NCCL's in-place placements. True if this rank's input and output may overlap in place at all;
// then input block b lies where output block b + in_place_shift() lies (all-gather and gather:
// shift = rank; reduce-scatter and scatter: shift = -rank; others 0).
bool has_in_place(Collective collective, int ranks, int root, int rank);
int in_place_shift(Collective collective, int ranks, int root, int rank);

// Which input block of rank `from` output block `block` of `rank` must hold (of every `from` where
// the collective reduces); -1 if `from` contributes nothing.
int required_input_block(Collective collective, int ranks, int root, int rank, int block, int from);

}  // namespace tessera
