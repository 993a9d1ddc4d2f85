/* Which chunk of an operator's matrix holds a row: index arithmetic that host and device code share. C99
 * and C++.
 *
 * A matrix is cut into blocks of rows, a block into chunks of whole units. With e units in each of n
 * chunks, and x units left over, the first x chunks have one unit more.
 *
 * Thread safety: pure functions. */
#ifndef TESSERA_TILE_CHUNKS_H_
#define TESSERA_TILE_CHUNKS_H_

#include <stdint.h>

/* Index arithmetic may be called in device code, too, where a compiler for one reads this. */
#if defined(__CUDACC__) || defined(__HIPCC__)
#define TSR_TILE_FUNCTION static inline __host__ __device__
#else
#define TSR_TILE_FUNCTION static inline
#endif

typedef struct tsrTileChunks {
  int64_t block_rows;  /* rows of a block */
  int64_t unit;        /* rows of a unit; the last of a block may have fewer */
  int64_t each, extra; /* units of a chunk; the first `extra` chunks of a block have one more */
  int64_t per_block;   /* chunks */
} tsrTileChunks;

/* The chunk that holds a row of the matrix, which must have it; chunks are counted from 0. */
TSR_TILE_FUNCTION int64_t tsrTileChunkOf(const tsrTileChunks* chunks, int64_t row) {
  const int64_t block = row / chunks->block_rows;
  const int64_t unit = (row - block * chunks->block_rows) / chunks->unit;
  const int64_t in_larger = chunks->extra * (chunks->each + 1);
  /* With fewer units than chunks `each` is 0 and all units are in larger ones. */
  const int64_t chunk = unit < in_larger ? unit / (chunks->each + 1)
                                         : chunks->extra + (unit - in_larger) / chunks->each;
  return block * chunks->per_block + chunk;
}

#endif /* TESSERA_TILE_CHUNKS_H_ */
