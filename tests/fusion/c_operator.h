// An operator as users of the C interface have it, and a kernel that stores one value everywhere.
#pragma once

#include <gtest/gtest.h>
#include <tessera/fused.h>

#include <vector>

#include "api/ranks.h"

namespace tessera {

inline tsrFusedConfig_t config(tsrFusedCollective_t collective, int64_t rows, int64_t cols) {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.collective = collective;
  config.rows = rows;
  config.cols = cols;
  config.tile_rows = 8;
  config.tile_cols = 16;
  return config;
}

// An operator with buffers, of one rank.
struct Operator {
  Operator(const tsrFusedConfig_t& wish, ncclComm_t comm)
      : input(static_cast<size_t>(wish.rows * wish.cols), 1.0F), output(input.size()) {
    EXPECT_EQ(tsrFusedCreate(&wish, comm, &op), ncclSuccess) << last_error();
    EXPECT_EQ(tsrFusedInput(op, input.data(), &in), ncclSuccess);
    EXPECT_EQ(tsrFusedOutput(op, output.data(), &out), ncclSuccess);
  }
  ~Operator() { EXPECT_EQ(tsrFusedDestroy(op), ncclSuccess) << last_error(); }

  void make_tiles(float value) {
    for (int64_t i = 0; i < tsrTileCount(&in); ++i) {
      int32_t row = 0, col = 0, rows = 0, cols = 0;
      tsrTileOrder(&in, i, &row, &col);
      tsrTileSize(&in, row, col, &rows, &cols);
      int64_t ld = 0;
      auto* tile = static_cast<float*>(tsrTilePtr(&in, row, col, &ld));
      for (int32_t r = 0; r < rows; ++r) {
        for (int32_t c = 0; c < cols; ++c)
          tile[in.column_major != 0 ? c * ld + r : r * ld + c] = value;
      }
      EXPECT_EQ(tsrTileDone(&in, row, col), ncclSuccess) << last_error();
    }
  }

  tsrFused_t op = nullptr;
  tsrTiles in{}, out{};
  std::vector<float> input, output;
};

}  // namespace tessera
