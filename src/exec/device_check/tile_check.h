// The tile interface in device code: a kernel finds its tiles, stores and reports them, and waits
// for rows, as a host thread does. For CUDA and HIP.
#pragma once

#include <tessera/tile_device.h>

namespace tessera::device_check {

// Each block makes every gridDim.x-th tile; the product is what `value` stands for.
__global__ void store_tiles(tsrDeviceTiles t, float value, ncclResult_t* failed) {
  for (int64_t i = blockIdx.x; i < tsrTileCount(&t.tiles); i += gridDim.x) {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    int64_t ld = 0;
    tsrTileOrder(&t.tiles, i, &row, &col);
    tsrTileSize(&t.tiles, row, col, &rows, &cols);
    float* const to = static_cast<float*>(tsrTilePtr(&t.tiles, row, col, &ld));
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t c = threadIdx.x; c < cols; c += blockDim.x)
        to[t.tiles.column_major ? c * ld + r : r * ld + c] = value;
    }
    if (const ncclResult_t r = tsrDeviceTileDone(&t, row, col); r != ncclSuccess) *failed = r;
  }
}

// Each block adds up every gridDim.x-th row of tiles of a row-major output, as soon as it is there.
__global__ void sum_rows(tsrDeviceTiles t, float* sums, ncclResult_t* failed) {
  for (int64_t i = blockIdx.x * int64_t{t.tiles.across}; i < tsrTileCount(&t.tiles);
       i += int64_t{gridDim.x} * t.tiles.across) {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    tsrTileOrder(&t.tiles, i, &row, &col);
    tsrTileSize(&t.tiles, row, col, &rows, &cols);
    const int64_t first = int64_t{row} * t.tiles.tile_rows;
    const void* where = nullptr;
    if (const ncclResult_t r = tsrDeviceTileWait(&t, first, rows, &where); r != ncclSuccess) {
      *failed = r;  // the same in all threads
      return;
    }
    for (int32_t r = threadIdx.x; r < rows; r += blockDim.x) {
      const float* const from = static_cast<const float*>(where) + r * t.tiles.ld;
      float sum = 0;
      for (int64_t c = 0; c < t.tiles.cols; ++c) sum += from[c];
      sums[first + r] = sum;
    }
  }
}

}  // namespace tessera::device_check
