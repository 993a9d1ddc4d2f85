#include "fusion/geometry.h"

namespace tessera {

Geometry::Geometry(const FusedDescription& d, int ranks, int rank)
    : rows_(d.rows), block_rows_(round_up_div(d.rows, ranks)), unit_(chunk_unit(d.row_bytes())) {
  // An all-reduce has one block, the matrix; who owns a part of it is the plan's affair.
  const bool whole = d.collective == Collective::kAllReduce;
  plan_block_rows_ = whole ? rows_ : block_rows_;
  plan_chunks_ = whole ? d.chunks * ranks : d.chunks;
  const int64_t own = owned(rank).size();
  input_rows_ = d.collective == Collective::kAllGather ? own : rows_;
  output_rows_ = d.collective == Collective::kReduceScatter ? own : rows_;
  input_ = RowChunks(input_rows_, plan_block_rows_, plan_chunks_, d.row_bytes());
  output_ = RowChunks(output_rows_, plan_block_rows_, plan_chunks_, d.row_bytes());
}

size_t Geometry::largest_chunk_rows() const {
  return largest_chunk(static_cast<size_t>(plan_block_rows_), static_cast<uint32_t>(plan_chunks_),
                       unit_);
}

}  // namespace tessera
