// Plans whose steps are triggered by tiles: the trigger maps of T3 as ordinary plans.
//
// Every chunk of the input has an external counter at its rank, which the tiles over it raise; the
// first step that reads the chunk waits for it. Every chunk of the output has a step counter at its
// rank, which the step that writes it raises, so that a consumer may wait for just its rows. Chunks
// are on lanes of their own as far as lanes go: what is complete moves, in whatever order tiles
// come.
//
//   reduce-scatter, ring     chunk of rank d: d+1 sends its tiles, each rank on the way adds its own
//                            and sends on, d adds and keeps
//   reduce-scatter, direct   each rank sends the chunk to d; d adds all in the order of ranks, or,
//                            in any order, each part of a peer as it comes and its own at last
//   all-reduce               the same, and the step that finishes a chunk starts its way back
//   all-gather               ring: round once; direct: to all at once. No tiles at the input
//   all-to-all               direct: each chunk to its destination
//
// Sums are combined in an order that the plan fixes, whatever order tiles and messages come in: the
// same input gives the same bits; but for `any_order`. Thread safety: pure functions.
//
// Remote stores. The plan says "copy input to slot"; where kernels have stored into the slot
// already, the space moves nothing (matrix_space.h): it is the same memory. A kernel stores after
// its launch before is over, and that is after the credits of all these slots, for which the last
// step of the pass waits: so no slot is written before its last reader is through. tessera/tile.h
// knows the slots by their numbers: at each rank those of its left neighbour's first hop are the
// first (ring), or those of peer 0, 1, ... without itself (direct), each `chunks`.
#pragma once

#include <cstdint>
#include <vector>

#include "fusion/description.h"
#include "fusion/geometry.h"
#include "plan/plan.h"

namespace tessera {

struct FusedPlanShape {
  Collective collective = Collective::kReduceScatter;
  Mapping mapping = Mapping::kDirect;
  int ranks = 1;
  int chunks = 1;  // per rank
  // Kernels store into slots of peers: a pass ends after these have been read. See remote_chunks.
  bool remote = false;
  // Tiles over each chunk of the input; 0 (no counter) for empty chunks, which come last. Empty:
  // the input is complete when the operator is launched.
  std::vector<uint32_t> arrivals;
  bool any_order = false;                 // direct sums add parts as they come
  uint64_t remote_chunks = ~uint64_t{0};  // which of a rank's chunks are, if any
  bool onto = false;  // two ranks: kernels add to the output of the owner, see plans_onto.cpp
};

// The shape of an operator's plan among so many ranks; all ranks' geometries give the same.
FusedPlanShape shape_of(const FusedDescription& description, const Geometry& geometry, int ranks);

// Ids of counters, the same at every rank.
struct FusedCounters {
  int tiles = 0;   // of input chunk 0, then 1, ...: as many as have arrivals
  int landed = 0;  // of output chunk 0, then 1, ...
};
FusedCounters counters_of(const FusedPlanShape& shape);

Plan fused_plan(const FusedPlanShape& shape);

// What is left of a plan of kernels that add onto peers where their own work does not count: steps
// that read the input wait and signal only. For costs; it computes nothing.
Plan without_kernels(Plan plan);

}  // namespace tessera
