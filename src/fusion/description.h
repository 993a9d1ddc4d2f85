// What a fused operator does: a collective on matrices, and the tiles in which a kernel makes or
// uses them.
//
// The matrix of an operator has `rows` x `cols` elements. Ranks own runs of rows: `block_rows` each
// (rows / ranks, rounded up), so that the last ranks may own fewer, or none.
//
//   collective      input of a rank          output of a rank       who is gated
//   reduce-scatter  the matrix               its own rows           sums wait for tiles
//   all-reduce      the matrix               the matrix             sums wait for tiles
//   all-to-all      the matrix               the matrix             blocks wait for tiles
//   all-gather      its own rows             the matrix             nothing: input is complete
//
// In an all-to-all the d-th run of rows goes to rank d, and lands as the run of its source; rows
// must divide by the ranks. To divide columns, describe the transposed matrix: a row-major matrix
// is a column-major one with rows and columns exchanged.
// Thread safety: plain data and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/types.h"

namespace tessera {

// Which ranks talk to each other.
enum class Mapping : uint8_t {
  kDirect,  // each chunk goes straight to who needs it; its owner sums all contributions at once
  kRing,    // each chunk goes round the ring and is added to on the way
};
const char* to_string(Mapping mapping);

// Whether tiles are added onto the memory of the rank that owns them (onto.h).
enum class OntoWish : uint8_t { kOff, kAllow, kRequire };

struct FusedDescription {
  Collective collective = Collective::kReduceScatter;
  Mapping mapping = Mapping::kDirect;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;  // ignored where nothing is reduced
  bool column_major = false;
  int64_t rows = 0, cols = 0;
  int64_t tile_rows = 0, tile_cols = 0;
  // Kernels store tiles of chunks that go to a peer first straight into its slot (plans.h).
  bool remote = false;
  uint64_t remote_chunks = 0;  // ... but of these of each rank only, bit by bit; 0: all
  bool any_order = false;      // sums are combined as parts come: direct mapping, more than 2 ranks
  OntoWish onto_wish = OntoWish::kOff;
  bool onto = false;   // what became of it
  int32_t parts = 1;   // reports per tile: split-K
  int32_t chunks = 0;  // per rank: pieces of a rank's rows that travel on their own; 0: choose
  uint64_t plan = 0;   // fingerprint of a plan that users brought (user_plan.h); 0: one of plans.h
  // Elements from one row (column major: column) to the next. May differ between ranks.
  int64_t input_ld = 0, output_ld = 0;  // 0: dense

  size_t row_bytes() const { return static_cast<size_t>(cols) * size_of(type); }
};

// Replaces zeros by what they stand for, clears `remote` where it cannot be and `any_order` where
// there is one order only, and checks everything that one rank can check. Leading dimensions are
// those of `rank`, of the rows that it has.
Result<FusedDescription> complete(FusedDescription wish, int ranks, int rank);
// That part of it which is about leading dimensions.
Status lay_out(FusedDescription* description, int ranks, int rank);

// "fused reduce-scatter of 1024 x 512 float32"
std::string describe(const FusedDescription& description);

// What all ranks must agree on, as a number; and the first thing that differs, as a sentence.
uint64_t digest(const FusedDescription& description);
std::string difference(int rank_a, const FusedDescription& a, int rank_b,
                       const FusedDescription& b);

}  // namespace tessera
