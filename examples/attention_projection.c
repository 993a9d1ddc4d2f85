/* Attention and its output projection with heads split over ranks: what a tensor-parallel transformer does. C99.
 *
 *   rank r: heads r * n .. r * n + n - 1;  O_h = softmax(Q_h K_h^T / sqrt(d)) V_h;  Y_r = sum over its heads of O_h W_h
 *   all:    Y = Y_0 + Y_1 + ..., each rank keeping its own rows (reduce-scatter), or all of them (all-reduce)
 *
 * One loop makes both products: it takes a row of tiles, computes the attention of those queries, multiplies them by
 * W tile by tile, and reports each tile. So tokens of other ranks are on their way while attention of later ones is
 * still computed. The result is compared with one rank's computation of all heads.
 *
 *   attention_projection [ranks]      default 2; must divide 8 heads */
#include <math.h>
#include <tessera/fused.h>

#include "check.h"
#include "ranks.h"

enum { kTokens = 136, kHeads = 8, kDim = 16, kModel = 120, kTileRows = 16, kTileCols = 40 };

enum { kQ, kK, kV, kW };

/* Element (row, col) of matrix `what` of a head: any numbers, about as large as those of a model. */
static float element(int what, int head, int row, int col) {
  unsigned x = (unsigned)(((what * kHeads + head) * 1024 + row) * 1024 + col) * 2654435761u;
  x ^= x >> 15;
  return (float)((x * 2246822519u) >> 8) / (float)(1 << 23) - 1;
}

/* out[0 .. kDim) := softmax(q K^T / sqrt(kDim)) V of one token and head. */
static void attend(int head, int token, float* out) {
  float score[kTokens], most = -INFINITY, sum = 0;
  for (int t = 0; t < kTokens; ++t) {
    score[t] = 0;
    for (int i = 0; i < kDim; ++i)
      score[t] += element(kQ, head, token, i) * element(kK, head, t, i);
    score[t] /= sqrtf(kDim);
    most = fmaxf(most, score[t]);
  }
  for (int i = 0; i < kDim; ++i) out[i] = 0;
  for (int t = 0; t < kTokens; ++t) {
    const float weight = expf(score[t] - most);
    sum += weight;
    for (int i = 0; i < kDim; ++i) out[i] += weight * element(kV, head, t, i);
  }
  for (int i = 0; i < kDim; ++i) out[i] /= sum;
}

/* tile := the columns from `first` on of O W, for `rows` tokens whose heads' results lie in `o`, one token a line. */
static void project(const float* o, int first_head, int heads, int rows, int first, int cols,
                    float* tile, int64_t ld) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      float sum = 0;
      for (int i = 0; i < heads * kDim; ++i)
        sum += o[r * heads * kDim + i] * element(kW, first_head + i / kDim, i % kDim, first + c);
      tile[r * ld + c] = sum;
    }
  }
}

/* Row `token` of Y, without tessera: all heads here. */
static void expected(int token, float* y) {
  float o[kHeads * kDim];
  for (int head = 0; head < kHeads; ++head) attend(head, token, o + head * kDim);
  project(o, 0, kHeads, 1, 0, kModel, y, kModel);
}

/* The rank's heads, for all tokens; tiles are reported as they are stored. */
static void attend_and_project(const Worker* worker, const tsrTiles* tiles) {
  const int heads = kHeads / worker->ranks, first_head = worker->rank * heads;
  float o[kTileRows * kHeads * kDim];
  int32_t at = -1; /* the row of tiles whose attention is in `o` */
  for (int64_t i = 0; i < tsrTileCount(tiles); ++i) {
    int32_t row, col, rows, cols;
    int64_t ld;
    tsrTileOrder(tiles, i, &row, &col); /* rows of other ranks first, each from left to right */
    tsrTileSize(tiles, row, col, &rows, &cols);
    for (int r = 0; at != row && r < rows; ++r) {
      for (int h = 0; h < heads; ++h)
        attend(first_head + h, row * kTileRows + r, o + (r * heads + h) * kDim);
    }
    at = row;
    float* tile = tsrTilePtr(tiles, row, col, &ld);
    project(o, first_head, heads, rows, col * kTileCols, cols, tile, ld);
    CHECK(tsrTileDone(tiles, row, col)); /* may travel, and be added, from now on */
  }
}

/* Rows of the output that differ from the unfused computation. */
static int wrong_rows(const float* y, int64_t first, int64_t count) {
  int wrong = 0;
  for (int64_t r = 0; r < count; ++r) {
    float want[kModel];
    expected((int)(first + r), want);
    for (int c = 0; c < kModel; ++c) wrong += !(fabsf(y[r * kModel + c] - want[c]) < 1e-4f);
  }
  return wrong;
}

static void layer(Worker* worker, tsrFusedCollective_t collective) {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.collective = collective;
  config.rows = kTokens;
  config.cols = kModel;
  config.tile_rows = kTileRows;
  config.tile_cols = kTileCols;
  float* partial = malloc(sizeof(float) * kTokens * kModel);
  float* y = malloc(sizeof(float) * kTokens * kModel);
  if (partial == NULL || y == NULL) exit(1);
  tsrFused_t op;
  tsrTiles in, out;
  CHECK(tsrFusedCreate(&config, worker->comm, &op));
  CHECK(tsrFusedInput(op, partial, &in));
  CHECK(tsrFusedOutput(op, y, &out));
  CHECK(tsrFusedLaunch(op, partial, y, NULL));
  attend_and_project(worker, &in);

  int64_t first = 0, count = kTokens;
  if (collective == tsrFusedReduceScatter) tsrTileOwned(&in, worker->rank, &first, &count);
  for (int64_t r = 0; r < count; r += kTileRows) { /* what comes next may use rows as they land */
    const int64_t rows = count - r < kTileRows ? count - r : kTileRows;
    CHECK(tsrTileWait(&out, r, rows, NULL));
    worker->wrong += wrong_rows(y + r * kModel, first + r, rows);
  }
  CHECK(tsrFusedWait(op)); /* `partial` and `y` may be used again */
  CHECK(tsrFusedDestroy(op));
  free(partial);
  free(y);
}

static void* work(void* argument) {
  layer(argument, tsrFusedReduceScatter);
  layer(argument, tsrFusedAllReduce);
  return NULL;
}

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 2;
  if (ranks < 1 || kHeads % ranks != 0) {
    fprintf(stderr, "usage: %s [ranks], which divide %d heads\n", argv[0], (int)kHeads);
    return 2;
  }
  const int wrong = run_ranks(ranks, work);
  printf(
      "%d ranks, %d heads, %d tokens: attention and projection, reduce-scatter and all-reduce: "
      "%s\n",
      ranks, (int)kHeads, (int)kTokens, wrong == 0 ? "correct" : "WRONG");
  return wrong != 0;
}
