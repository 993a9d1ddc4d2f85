/* Tiles that a GPU's kernel reports and waits for by itself: the device twins of tsrTileDone and
 * tsrTileWait (tile.h). The structure and what fills it: C99 and C++; the twins: CUDA and HIP, C++17.
 *
 *   __global__ void product(tsrDeviceTiles t) {            // by value; from tsrFusedDeviceInput
 *     for (int64_t i = blockIdx.x; i < tsrTileCount(&t.tiles); i += gridDim.x) {
 *       int32_t row, col;
 *       int64_t ld;
 *       tsrTileOrder(&t.tiles, i, &row, &col);
 *       make_tile(row, col, tsrTilePtr(&t.tiles, row, col, &ld), ld);    // all threads of the block
 *       tsrDeviceTileDone(&t, row, col);                                 // all threads, too
 *     }
 *   }
 *
 * The steps of the collective still run on the host: while the kernel runs, a host thread is to be in
 * tsrFusedWait or tsrTileWait, or the operator launched on a stream of tsrStreamCreate. Nobody rings
 * for what a device reports, so these look about every 100 us where they would sleep for longer.
 *
 * Requires: a device that uses host memory, as it was allocated, with the host's atomics
 * (cudaDevAttrPageableMemoryAccess and cudaDevAttrHostNativeAtomicSupported, or their HIP twins);
 * input and output where device and host both reach them. On others the host reports tiles.
 * Tiles of one launch may be reported by devices and host threads alike.
 *
 * Blocks are one-, two- or three-dimensional; every thread calls, with the same arguments.
 * Stores by TMA (cp.async.bulk) are no stores of the block's threads until who issued them has waited
 * for cp.async.bulk.wait_group 0 (not .read); who reads waited-for rows by TMA makes fence.proxy.async
 * after tsrDeviceTileWait. Rows waited for must not be read by loads that assume constant memory
 * (__ldg, const __restrict__).
 *
 * Thread safety: the twins from any number of blocks. A tsrDeviceTiles may be copied; it is valid
 * until its operator is destroyed, through all launches.
 *
 * Invariants relied upon below
 *   (a) Words only grow, by atomic additions: a target once reached stays reached (I3).
 *   (b) All stores of a block to its tile come before the leader's report: the barrier, and the
 *       release of the report, which covers what the leader knows by the barrier (I5).
 *   (c) Additions to a tally form one chain, each acquiring what those before it released. Who adds
 *       the last part has acquired all parts, and releases them with its addition to the chunks.
 *   (d) What the leader acquired is before all that the block's threads do after the barrier that
 *       follows. */
#ifndef TESSERA_TILE_DEVICE_H_
#define TESSERA_TILE_DEVICE_H_

#include <nccl.h>
#include <stdint.h>
#include <tessera/fused.h>
#include <tessera/tile.h>
#include <tessera/tile_chunks.h>

/* From the counter of a chunk to the next one's, in bytes. */
#define TSR_COUNTER_STRIDE 64

/* One side of an operator, in device code. The words are those that the host counts with. */
typedef struct tsrDeviceTiles {
  tsrTiles tiles;       /* for tsrTileCount, tsrTileOrder, ... */
  tsrTileChunks chunks; /* of this side's rows */
  char* counters;       /* of chunk 0, 1, ...: tiles that came, or passes that landed */
  uint64_t* tallies;    /* of tile (0, 0), (0, 1), ...: reports. NULL: no reports on this side */
  const uint64_t* launches; /* that are over (input), that have begun (output) */
  uint64_t first_pass;      /* at which the counters of an output stood before the first launch */
  uint64_t timeout_ns; /* of a wait in which no chunk comes; TESSERA_TIMEOUT_MS, may be changed */
} tsrDeviceTiles;

#ifdef __cplusplus
extern "C" {
#endif

/* The sides of the operator for device code; as tsrFusedInput and tsrFusedOutput. */
ncclResult_t tsrFusedDeviceInput(tsrFused_t op, void* input, tsrDeviceTiles* tiles);
ncclResult_t tsrFusedDeviceOutput(tsrFused_t op, void* output, tsrDeviceTiles* tiles);

#ifdef __cplusplus
} /* extern "C" */

#include <tessera/device_block.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TSR_DEVICE_FUNCTION __device__ inline
#else
#define TSR_DEVICE_FUNCTION inline
#endif

static_assert(sizeof(tsrDeviceTiles) <= 256, "one kernel argument among others");

/* The twins for any kind of block; `Block` is as tessera::device::Block. On a host, one of threads
 * stands in for it, so that tests can run what a GPU does. */
namespace tessera::device {

TSR_DEVICE_FUNCTION uint64_t* counter_of(const tsrDeviceTiles& t, int64_t chunk) {
  return reinterpret_cast<uint64_t*>(t.counters + chunk * TSR_COUNTER_STRIDE);
}

template <class Block>
TSR_DEVICE_FUNCTION ncclResult_t tile_done(Block& block, const tsrDeviceTiles& t, int32_t row,
                                           int32_t col) {
  using Words = typename Block::Words;
  const bool there = row >= 0 && col >= 0 && row < t.tiles.down && col < t.tiles.across;
  if (!there || t.tallies == nullptr) return ncclInvalidArgument;
  block.meet();  // (b)
  if (!block.leads()) return ncclSuccess;
  const uint64_t limit =
      static_cast<uint64_t>(t.tiles.parts) * (Words::acquire(t.launches) + 1);  // (a)
  uint64_t* const tally = t.tallies + static_cast<int64_t>(row) * t.tiles.across + col;
  const uint64_t part = Words::add_below(tally, limit);  // (b), (c)
  if (part == 0) return ncclInvalidUsage;
  if (part < limit) return ncclSuccess;
  const int64_t first_row = static_cast<int64_t>(row) * t.tiles.tile_rows;
  const int64_t below = first_row + t.tiles.tile_rows;
  const int64_t last_row = (below < t.tiles.rows ? below : t.tiles.rows) - 1;
  const int64_t last = tsrTileChunkOf(&t.chunks, last_row);
  for (int64_t chunk = tsrTileChunkOf(&t.chunks, first_row); chunk <= last; ++chunk)
    Words::add(counter_of(t, chunk), 1);  // (c)
  return ncclSuccess;
}

// Chunks that have landed in all launches: it grows while the launch gets on.
template <class Words>
TSR_DEVICE_FUNCTION uint64_t landed_of(const tsrDeviceTiles& t) {
  uint64_t sum = 0;
  const int64_t last = t.tiles.rows > 0 ? tsrTileChunkOf(&t.chunks, t.tiles.rows - 1) : -1;
  for (int64_t chunk = 0; chunk <= last; ++chunk) sum += Words::acquire(counter_of(t, chunk));
  return sum;
}

// The leader's part of tile_wait().
template <class Block>
TSR_DEVICE_FUNCTION ncclResult_t await_rows(Block& block, const tsrDeviceTiles& t,
                                            int64_t first_row, int64_t rows) {
  using Words = typename Block::Words;
  const uint64_t launches = Words::acquire(t.launches);
  if (launches == 0) return ncclInvalidUsage;
  if (rows == 0) return ncclSuccess;
  uint64_t begin = block.now_ns(), before = landed_of<Words>(t);
  const int64_t last = tsrTileChunkOf(&t.chunks, first_row + rows - 1);
  for (int64_t chunk = tsrTileChunkOf(&t.chunks, first_row); chunk <= last; ++chunk) {
    const uint64_t* const landed = counter_of(t, chunk);
    while (Words::acquire(landed) < t.first_pass + launches) {  // (a)
      const uint64_t now = block.now_ns();
      if (now > begin && now - begin > t.timeout_ns) {
        const uint64_t all = landed_of<Words>(t);
        if (all == before) return ncclRemoteError;
        before = all;
        begin = now;
      }
      block.pause();
    }
  }
  return ncclSuccess;
}

template <class Block>
TSR_DEVICE_FUNCTION ncclResult_t tile_wait(Block& block, const tsrDeviceTiles& t, int64_t first_row,
                                           int64_t rows, const void** where) {
  if (first_row < 0 || rows < 0 || rows > t.tiles.rows - first_row) return ncclInvalidArgument;
  const int waited = block.leads() ? await_rows(block, t, first_row, rows) : ncclSuccess;
  const auto result = static_cast<ncclResult_t>(block.tell(waited));  // (d)
  if (result == ncclSuccess && where != nullptr) {
    const int64_t apart = t.tiles.column_major != 0 ? 1 : t.tiles.ld;
    *where = static_cast<const char*>(t.tiles.matrix) + first_row * apart * t.tiles.element_bytes;
  }
  return result;
}

}  // namespace tessera::device

#if defined(__CUDACC__) || defined(__HIPCC__)

/* Publishes a tile of the input, or a part of it: the threads of the block have stored it. Meets the
 * block once and does not wait for the report: threads other than the first go on.
 * Results, in the block's first thread (the others have ncclSuccess at once):
 * ncclInvalidUsage: reported more often than `parts` times for one launch; the report was not
 * counted. In all threads: ncclInvalidArgument: no such tile, or a side that has no reports. */
static __device__ inline ncclResult_t tsrDeviceTileDone(const tsrDeviceTiles* tiles, int32_t row,
                                                        int32_t col) {
  tessera::device::Block block;
  return tessera::device::tile_done(block, *tiles, row, col);
}

/* Waits until rows [first_row, first_row + rows) of the output of the latest launch are there, and
 * gives their address in *where (may be NULL). The result is the same in all threads.
 * ncclInvalidArgument: no such rows. ncclInvalidUsage: the operator was not launched.
 * ncclRemoteError: no chunk of the output came for timeout_ns. A host's wait may go on longer, for it
 * sees tiles and steps, too, and has the reason; it ends at once when the communicator is aborted or
 * broken, of which a device does not hear. */
static __device__ inline ncclResult_t tsrDeviceTileWait(const tsrDeviceTiles* tiles,
                                                        int64_t first_row, int64_t rows,
                                                        const void** where) {
  tessera::device::Block block;
  return tessera::device::tile_wait(block, *tiles, first_row, rows, where);
}

#endif
#endif /* __cplusplus */

#endif /* TESSERA_TILE_DEVICE_H_ */
