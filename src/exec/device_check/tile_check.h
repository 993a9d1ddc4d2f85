// The tile interface in device code: a kernel finds its tiles and where they go, as a host thread
// does. For CUDA and HIP.
#pragma once

#include <tessera/tile.h>

namespace tessera::device_check {

// Each block makes every gridDim.x-th tile; the product is what `value` stands for.
__global__ void store_tiles(tsrTiles tiles, float value) {
  for (int64_t i = blockIdx.x; i < tsrTileCount(&tiles); i += gridDim.x) {
    int32_t row = 0, col = 0, rows = 0, cols = 0;
    int64_t ld = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    tsrTileSize(&tiles, row, col, &rows, &cols);
    float* const to = static_cast<float*>(tsrTilePtr(&tiles, row, col, &ld));
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t c = threadIdx.x; c < cols; c += blockDim.x)
        to[tiles.column_major ? c * ld + r : r * ld + c] = value;
    }
  }
}

}  // namespace tessera::device_check
