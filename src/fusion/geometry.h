// Which rows are which chunk, and which tiles lie over it: index arithmetic, no tables.
//
// A matrix is cut into blocks of `block_rows` rows, each block into `chunks` chunks as the plan
// does it (plan/partition.h); rows beyond the matrix do not exist, so that the last chunks may be
// shorter, or empty. A tile counts on every chunk that it touches.
// Thread safety: pure functions.
#pragma once

#include <tessera/tile_chunks.h>

#include <algorithm>
#include <cstdint>

#include "fusion/description.h"
#include "plan/partition.h"

namespace tessera {

struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

constexpr int64_t round_up_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class RowChunks {
 public:
  RowChunks() = default;
  // `row_bytes`: of a compact row; decides on what multiples chunks begin.
  RowChunks(int64_t rows, int64_t block_rows, int chunks_per_block, size_t row_bytes)
      : rows_(rows) {
    cut_.block_rows = block_rows;
    cut_.unit = static_cast<int64_t>(chunk_unit(row_bytes));
    const int64_t units = round_up_div(block_rows, cut_.unit);
    cut_.each = units / chunks_per_block;
    cut_.extra = units % chunks_per_block;
    cut_.per_block = chunks_per_block;
  }

  // Empty for chunks beyond the matrix.
  RowRange rows_of(int chunk) const {
    const int64_t block = chunk / cut_.per_block, in_block = chunk % cut_.per_block;
    const ChunkRange range =
        chunk_range(static_cast<size_t>(cut_.block_rows), static_cast<uint32_t>(cut_.per_block),
                    static_cast<uint32_t>(in_block), static_cast<size_t>(cut_.unit));
    const int64_t begin = block * cut_.block_rows + static_cast<int64_t>(range.begin);
    const int64_t end = begin + static_cast<int64_t>(range.length);
    return {std::min(begin, rows_), std::min(end, rows_)};
  }

  // The inverse: the chunk that holds a row of the matrix.
  int chunk_of(int64_t row) const { return static_cast<int>(tsrTileChunkOf(&cut_, row)); }
  // The same for device code.
  const tsrTileChunks& cut() const { return cut_; }

 private:
  int64_t rows_ = 0;
  tsrTileChunks cut_{1, 1, 1, 0, 1};
};

// The tiles of a matrix.
struct TileGrid {
  int64_t rows = 0, cols = 0;
  int64_t tile_rows = 1, tile_cols = 1;

  int64_t down() const { return round_up_div(rows, tile_rows); }
  int64_t across() const { return round_up_div(cols, tile_cols); }
  int64_t tiles() const { return down() * across(); }
  RowRange rows_of(int64_t tile_row) const {
    return {tile_row * tile_rows, std::min(rows, (tile_row + 1) * tile_rows)};
  }
  // Tile rows over a run of rows that is not empty.
  RowRange tile_rows_over(const RowRange& range) const {
    return {range.begin / tile_rows, (range.end - 1) / tile_rows + 1};
  }
  // How many tiles touch a run of rows.
  int64_t tiles_over(const RowRange& range) const {
    return range.size() == 0 ? 0 : tile_rows_over(range).size() * across();
  }
};

// Rows, blocks and chunks of an operator among `ranks` ranks.
class Geometry {
 public:
  Geometry() = default;
  Geometry(const FusedDescription& description, int ranks, int rank);

  int64_t block_rows() const { return block_rows_; }  // of a rank
  RowRange owned(int rank) const {
    return {std::min(rows_, rank * block_rows_), std::min(rows_, (rank + 1) * block_rows_)};
  }
  const RowChunks& input() const { return input_; }
  const RowChunks& output() const { return output_; }
  int64_t input_rows() const { return input_rows_; }
  int64_t output_rows() const { return output_rows_; }
  // Rows of a block of the plan, and its chunks.
  int64_t plan_block_rows() const { return plan_block_rows_; }
  int plan_chunks() const { return plan_chunks_; }
  size_t largest_chunk_rows() const;

 private:
  int64_t rows_ = 0, block_rows_ = 1;
  int64_t plan_block_rows_ = 1;
  int plan_chunks_ = 1;
  int64_t input_rows_ = 0, output_rows_ = 0;
  size_t unit_ = 1;
  RowChunks input_, output_;
};

}  // namespace tessera
