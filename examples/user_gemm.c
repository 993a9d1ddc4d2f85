/* A matrix product of one's own that drives an all-reduce tile by tile: what tensor-parallel layers do. C99.
 *
 * Every rank holds a slice of K. The product is an ordinary loop over tiles; the lines marked (1) to (5) are all that
 * the communication needs: finished tiles travel and are added while later ones are made.
 *
 *   user_gemm [ranks]      default 2 */
#include <tessera/fused.h>

#include "check.h"
#include "ranks.h"

enum { kM = 192, kN = 160, kK = 96, kTile = 32 };

/* c := a b for one tile. */
static void multiply(const float* a, const float* b, float* c, int64_t ldc, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
      c[i * ldc + j] = sum;
    }
  }
}

static void* work(void* argument) {
  Worker* worker = argument;
  float* a = malloc(sizeof(float) * kM * kK);
  float* b = malloc(sizeof(float) * kK * kN);
  float* c = malloc(sizeof(float) * kM * kN);
  if (a == NULL || b == NULL || c == NULL) exit(1);
  for (int i = 0; i < kM * kK; ++i) a[i] = (float)(worker->rank + 1);
  for (int i = 0; i < kK * kN; ++i) b[i] = 1;

  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER; /* (1) what follows the product */
  config.collective = tsrFusedAllReduce;
  config.rows = kM;
  config.cols = kN;
  config.tile_rows = config.tile_cols = kTile;
  config.remote = 1;
  tsrFused_t op;
  CHECK(tsrFusedCreate(&config, worker->comm, &op));
  tsrTiles tiles;
  CHECK(tsrFusedInput(op, c, &tiles));

  for (int layer = 0; layer < 3; ++layer) {
    CHECK(tsrFusedLaunch(op, c, c, NULL)); /* (2) in place */
    for (int64_t i = 0; i < tsrTileCount(&tiles); ++i) {
      int32_t row, col, rows, cols;
      int64_t ld;
      tsrTileOrder(&tiles, i, &row, &col); /* (3) tiles for others first */
      tsrTileSize(&tiles, row, col, &rows, &cols);
      float* c_tile = tsrTilePtr(&tiles, row, col, &ld);
      multiply(a + row * kTile * kK, b + col * kTile, c_tile, ld, rows, cols);
      CHECK(tsrTileDone(&tiles, row, col)); /* (4) may travel */
    }
    CHECK(tsrFusedWait(op)); /* (5) the sum is there */
    const float sum = (float)(kK * worker->ranks * (worker->ranks + 1) / 2);
    for (int i = 0; i < kM * kN; ++i) worker->wrong += c[i] != sum;
  }
  CHECK(tsrFusedDestroy(op));
  free(a);
  free(b);
  free(c);
  return NULL;
}

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 2;
  if (ranks < 1 || ranks > kMaxRanks) {
    fprintf(stderr, "usage: %s [ranks], 1 to %d\n", argv[0], (int)kMaxRanks);
    return 2;
  }
  const int wrong = run_ranks(ranks, work);
  printf("%d ranks, %d x %d product and its sum, three times: %s\n", ranks, (int)kM, (int)kN,
         wrong == 0 ? "correct" : "WRONG");
  return wrong != 0;
}
