/* Tiles: what a compute kernel calls to drive a collective tile by tile. C99 and C++.
 *
 * An operator (fused.h) hands out a tsrTiles for its input (the producer's side) and one for its
 * output (the consumer's side). A kernel then looks like this:
 *
 *   for (int64_t i = next++; i < tsrTileCount(t); i = next++) {   // any number of threads
 *     int32_t row, col;
 *     tsrTileOrder(t, i, &row, &col);                             // which tile to make as the i-th
 *     int64_t ld;
 *     void* to = tsrTilePtr(t, row, col, &ld);                    // where to store it
 *     make_tile(row, col, to, ld);                                // the kernel's own work
 *     tsrTileDone(t, row, col);                                   // its chunk may travel
 *   }
 *
 * Row and col count tiles, from 0. Tiles at the lower and right edge may be smaller: tsrTileSize.
 * Everything but tsrTileDone, tsrTileOnto and tsrTileWait is index arithmetic on the structure.
 *
 * In a GPU's kernel: everything but these three, on a tsrTiles passed by value. The host reports
 * tiles once the kernel, or a part of it, has made them; where device and host share memory the
 * kernel may do so itself (tile_device.h).
 *
 * Thread safety: every function from any thread. A tsrTiles may be copied; it is valid until its
 * operator is destroyed, which must not begin before every tsrTileDone has returned. */
#ifndef TESSERA_TILE_H_
#define TESSERA_TILE_H_

#include <nccl.h>
#include <stddef.h>
#include <stdint.h>
#include <tessera/tile_chunks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tsrTiles {
  void* op;           /* the library's */
  void* matrix;       /* element (0, 0) */
  int64_t rows, cols; /* of the matrix, in elements */
  int64_t ld;         /* elements from one row (column major: column) to the next */
  int64_t block_rows; /* rows that each rank owns; the last ranks may own fewer */
  int32_t tile_rows, tile_cols;
  int32_t down, across; /* tiles in a column and in a row of tiles */
  int32_t start;        /* row of tiles below the first in tsrTileOrder */
  int32_t parts;        /* reports of tsrTileDone per tile; 0: of the output */
  int32_t rank, ranks;
  int32_t element_bytes;
  int32_t column_major;
  /* Chunks stored straight into slots of peers; remote_base NULL: none. */
  char* remote_base;
  int64_t remote_rank_bytes, remote_slot_bytes;
  int32_t chunk_rows, chunks; /* rows of a chunk; chunks of a rank */
  int32_t ring;
  int32_t onto;           /* 1: tsrTileOnto has the places of tiles */
  uint64_t remote_chunks; /* bit c: chunk c of each rank is stored straight */
} tsrTiles;

/* Tiles of the matrix. */
TSR_TILE_FUNCTION int64_t tsrTileCount(const tsrTiles* tiles) {
  return (int64_t)tiles->down * tiles->across;
}

/* The tile to make, or to use, as the i-th, 0 <= i < tsrTileCount. Staggered: each rank begins with
 * the rows of the rank before it and ends with its own (producer), or begins with its own and goes
 * on in the order in which rows arrive (consumer); a row of tiles from left to right. Any other
 * order is correct too, but for tsrTileOnto: there a producer begins with its own rows, and must. */
TSR_TILE_FUNCTION void tsrTileOrder(const tsrTiles* tiles, int64_t i, int32_t* row, int32_t* col) {
  const int64_t back = tiles->start - 1 - i / tiles->across;
  *row = (int32_t)(back >= 0 ? back : back + tiles->down);
  *col = (int32_t)(i % tiles->across);
}

/* Elements of a tile in each direction. */
TSR_TILE_FUNCTION void tsrTileSize(const tsrTiles* tiles, int32_t row, int32_t col, int32_t* rows,
                                   int32_t* cols) {
  const int64_t below = tiles->rows - (int64_t)row * tiles->tile_rows;
  const int64_t right = tiles->cols - (int64_t)col * tiles->tile_cols;
  *rows = below < tiles->tile_rows ? (int32_t)below : tiles->tile_rows;
  *cols = right < tiles->tile_cols ? (int32_t)right : tiles->tile_cols;
}

/* Where the tile's first element is stored; its lines are *ld elements apart. In the matrix, or, for
 * an operator with remote stores, in memory of the rank that gets it; then only after the launch
 * before is over, and the matrix does not hold the tile. */
TSR_TILE_FUNCTION void* tsrTilePtr(const tsrTiles* tiles, int32_t row, int32_t col, int64_t* ld) {
  int64_t r = (int64_t)row * tiles->tile_rows;
  const int64_t c = (int64_t)col * tiles->tile_cols;
  char* base = (char*)tiles->matrix;
  *ld = tiles->ld;
  if (tiles->remote_base != NULL) {
    const int32_t chunk = (int32_t)(r / tiles->chunk_rows), owner = chunk / tiles->chunks;
    const int32_t left = (tiles->rank + tiles->ranks - 1) % tiles->ranks;
    const uint64_t straight = (tiles->remote_chunks >> (chunk % tiles->chunks)) & 1;
    if (straight && (tiles->ring ? owner == left : owner != tiles->rank)) {
      const int32_t to = tiles->ring ? (tiles->rank + 1) % tiles->ranks : owner;
      const int32_t before = tiles->ring ? 0 : tiles->rank - (tiles->rank > to);
      const int64_t slot = (int64_t)before * tiles->chunks + chunk % tiles->chunks;
      base = tiles->remote_base + to * tiles->remote_rank_bytes + slot * tiles->remote_slot_bytes;
      *ld = tiles->column_major ? tiles->chunk_rows : tiles->cols;
      r -= (int64_t)chunk * tiles->chunk_rows;
    }
  }
  return base + (tiles->column_major ? c * *ld + r : r * *ld + c) * tiles->element_bytes;
}

/* Rows of the operator's matrix that a rank owns: [first, first + count). For sides that show the
 * whole matrix. */
TSR_TILE_FUNCTION void tsrTileOwned(const tsrTiles* tiles, int32_t rank, int64_t* first,
                                    int64_t* count) {
  const int64_t begin = rank * tiles->block_rows, left = tiles->rows - begin;
  *first = left > 0 ? begin : tiles->rows;
  *count = left <= 0 ? 0 : left < tiles->block_rows ? left : tiles->block_rows;
}

/* Where the calling thread is to make a tile of the input, and how: in place of tsrTilePtr, for
 * operators with `onto`; after the launch, once a launch and tile. *add 0: it stores the tile as ever.
 * 1: it adds the tile to what is there, by one addition for each element: that is the output of the
 * peer, where the owner has stored its own part. Lines are *ld elements apart. In either case
 * tsrTileDone follows, soon: until then a peer whose launch failed does not get its memory back.
 * Waits until the owner of the tile has made its part of it, and runs steps of the collective
 * meanwhile. So the threads of a rank take tiles of the own rows first, in any order, then the others,
 * as tsrTileOrder has them: who waits must not owe tiles of the own rows. Where `onto` was taken back
 * it does not wait, and gives what tsrTilePtr gives.
 * ncclInvalidArgument: no such tile, or of the output. ncclInvalidUsage: not launched, or asked for
 * twice in a launch. ncclRemoteError: as tsrTileWait, or the launch of the owner has failed. After an
 * error nothing may be stored, and nothing reported. */
ncclResult_t tsrTileOnto(const tsrTiles* tiles, int32_t row, int32_t col, void** where, int64_t* ld,
                         int32_t* add);

/* Publishes a tile of the input: the calling thread has stored it. With `parts` > 1 (split-K) every
 * part reports once; the last report publishes the tile, together with what the threads that
 * reported before had stored. A tile may be reported before the launch that sends it, once the
 * launch before is over. May run steps of the collective on the calling thread, within the budget
 * (tsrFusedSetBudget). Where tiles->onto is 1: only after tsrTileOnto has given the place.
 * ncclInvalidArgument: no such tile, or of the output. ncclInvalidUsage: reported more often than `parts` times for
 * one launch; the report was not counted. */
ncclResult_t tsrTileDone(const tsrTiles* tiles, int32_t row, int32_t col);

/* Waits until rows [first_row, first_row + rows) of the output of the latest launch are there, and
 * gives their address in *where (may be NULL). Runs steps of the collective on the calling thread
 * while it waits. Whoever still owes tiles of the input must not wait here for what may depend on
 * them: chunks of the output come in an order of the plan's, not of the tiles'.
 * ncclInvalidArgument: no such rows, or of the input. ncclInvalidUsage: the operator was not launched.
 * ncclRemoteError: no progress for TESSERA_TIMEOUT_MS, a peer is gone, or the communicator was
 * aborted; ncclGetLastError names the missing tiles or the rank that is waited for. */
ncclResult_t tsrTileWait(const tsrTiles* tiles, int64_t first_row, int64_t rows,
                         const void** where);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TILE_H_ */
