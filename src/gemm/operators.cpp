#include "gemm/operators.h"

#include <algorithm>
#include <tuple>

namespace tessera::gemm {
namespace {

constexpr size_t kMostOperators = 32;  // least used ones are given up
constexpr int64_t kPieces = 4;         // rows of tiles for a rank's rows, at best
// A tile packs its rows of A and its columns of B once more, which costs where there are few of
// either.
constexpr int64_t kLeastRows = 128, kMostRows = 512, kMostCols = 8192;

// What ranks share: all of them find an operator, or none.
auto shape(const tsrFusedConfig_t& c) {
  return std::make_tuple(c.collective, c.map, c.type, c.column_major, c.rows, c.cols, c.tile_rows,
                         c.tile_cols);
}

}  // namespace

Operators::~Operators() {
  for (const Operator& op : operators_) static_cast<void>(tsrFusedDestroy(op.fused));
}

ncclResult_t Operators::find(const tsrFusedConfig_t& config, Operator** out) {
  const auto found = std::find_if(operators_.begin(), operators_.end(), [&](const Operator& op) {
    return shape(op.config) == shape(config);
  });
  if (found != operators_.end()) {
    operators_.splice(operators_.begin(), operators_, found);
    found->config.input_ld = config.input_ld;
    found->config.output_ld = config.output_ld;
    if (const ncclResult_t r = tsrFusedSetLines(found->fused, config.input_ld, config.output_ld);
        r != ncclSuccess)
      return r;
  } else {
    if (operators_.size() == kMostOperators) drop_oldest();
    tsrFused_t fused = nullptr;
    ncclResult_t result = create(config, &fused);
    // No room, which all ranks find alike.
    while (result == ncclSystemError && !operators_.empty()) {
      drop_oldest();
      result = create(config, &fused);
    }
    if (result != ncclSuccess) return result;
    operators_.push_front({config, fused});
  }
  *out = &operators_.front();
  return ncclSuccess;
}

// In tiles that are added onto the peer, if they can be, else in those of `config`.
ncclResult_t Operators::create(const tsrFusedConfig_t& config, tsrFused_t* fused) {
  if (config.onto != tsrOntoOff) {
    const ncclResult_t result = create_onto(config, fused);
    if (result != ncclSuccess || *fused != nullptr) return result;
  }
  return tsrFusedCreate(&config, comm_, fused);
}

// Nothing travels, so one tile for each thread and rank will do. NULL: it cannot be.
ncclResult_t Operators::create_onto(tsrFusedConfig_t config, tsrFused_t* fused) {
  int ranks = 0;
  if (const ncclResult_t r = ncclCommCount(comm_, &ranks); r != ncclSuccess) return r;
  if (ranks != 2) return ncclSuccess;
  const int64_t owned = (config.rows + 1) / 2;
  int64_t pieces = std::clamp<int64_t>(owned / kLeastRows, 1, threads_);
  while (owned % pieces != 0) --pieces;  // no tile may lie over the rows of both ranks
  config.tile_rows = static_cast<int32_t>(owned / pieces);
  if (const ncclResult_t r = tsrFusedCreate(&config, comm_, fused); r != ncclSuccess) return r;
  tsrTiles tiles;
  const ncclResult_t result = tsrFusedInput(*fused, nullptr, &tiles);
  if (result == ncclSuccess && tiles.onto != 0) return result;
  static_cast<void>(tsrFusedDestroy(*fused));
  *fused = nullptr;
  return result;
}

void Operators::drop_oldest() {
  static_cast<void>(tsrFusedDestroy(operators_.back().fused));
  operators_.pop_back();
}

void choose_tiles(int64_t rows, int ranks, int64_t cols, tsrFusedConfig_t* config) {
  const int64_t owned = (rows + ranks - 1) / ranks;
  int64_t pieces = std::clamp<int64_t>(owned / kLeastRows, 1, kPieces);
  pieces = std::max(pieces, (owned + kMostRows - 1) / kMostRows);
  // Tiles that end where a rank's rows do hold up no chunk of another.
  while (owned % pieces != 0 && owned / (pieces + 1) >= kLeastRows && pieces < 2 * kPieces)
    ++pieces;
  config->tile_rows = static_cast<int32_t>((owned + pieces - 1) / pieces);
  config->tile_cols = static_cast<int32_t>(std::clamp<int64_t>(cols, 1, kMostCols));
}

}  // namespace tessera::gemm
