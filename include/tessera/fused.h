/* Fused operators: collectives on matrices that a compute kernel drives tile by tile. C99 and C++.
 *
 *   reduce-scatter   input: the matrix, made in tiles. Output: the sum of the rank's own rows
 *   all-reduce       input: the matrix, made in tiles. Output: the sum
 *   all-to-all       input: the matrix, made in tiles; the d-th run of rows goes to rank d.
 *                    Output: a matrix whose s-th run of rows came from rank s
 *   all-gather       input: the rank's own rows, complete at the launch. Output: the matrix
 *
 * Ranks own runs of rows / ranks rows, rounded up; the last ranks may own fewer, or none. Chunks of
 * an owner's rows travel on their own, each as soon as the tiles over it are there; consumers wait
 * for just the rows they need (tile.h). To divide columns, describe the transposed matrix.
 *
 * Steps of the collective run on the threads that report tiles, within a budget; on those that
 * wait; and on the stream's thread, when launched on a stream of tsrStreamCreate.
 *
 * Sums are combined in an order that the mapping fixes, whatever order tiles come in: the same
 * input gives the same bits, unless `any_order` is asked for. float16 and bfloat16 add in float32
 * and round once a step.
 *
 * Thread safety: every function from any thread; create, launch and destroy of one operator from
 * one thread at a time.
 * Errors: ncclGetLastError has the text. What breaks a launch breaks the communicator. */
#ifndef TESSERA_FUSED_H_
#define TESSERA_FUSED_H_

#include <nccl.h>
#include <stddef.h>
#include <tessera/tile.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  tsrFusedReduceScatter = 0,
  tsrFusedAllReduce = 1,
  tsrFusedAllGather = 2,
  tsrFusedAllToAll = 3
} tsrFusedCollective_t;

typedef enum {
  tsrMapDirect = 0, /* each chunk straight to who needs it; its owner adds all parts at once */
  tsrMapRing = 1    /* each chunk round the ring, added to on the way; not for all-to-all */
} tsrFusedMap_t;

/* Whether kernels add tiles to the output of the rank that owns them. */
typedef enum {
  tsrOntoOff = 0,
  tsrOntoAllow = 1,  /* where it can be; tsrFusedExplain says why not */
  tsrOntoRequire = 2 /* else tsrFusedCreate fails on all ranks */
} tsrFusedOnto_t;

typedef struct tsrFusedConfig {
  /* Of this structure, as the caller was compiled; TSR_FUSED_CONFIG_INITIALIZER sets it. Fields that
   * came later are as if 0. */
  size_t size;
  tsrFusedCollective_t collective;
  tsrFusedMap_t map;
  ncclDataType_t type;
  ncclRedOp_t op; /* a built-in one */
  int32_t column_major;
  int64_t rows, cols; /* of the matrix */
  int32_t tile_rows, tile_cols;
  int32_t parts;  /* reports per tile: splits of K */
  int32_t chunks; /* per rank; 0: choose */
  /* Not 0: kernels store tiles that leave the rank as they are straight into the memory of the rank
   * that gets them, where tsrTilePtr says; a copy is saved, and a launch is over only when the peers
   * have read them. Taken back where a chunk is not made of whole tiles: rows are to divide by ranks
   * x chunks x tile_rows. */
  int32_t remote;
  int64_t input_ld, output_ld; /* elements; 0: dense. May differ between ranks */
  /* Not 0: with tsrMapDirect and more than 2 ranks, an owner adds the parts of peers in the order in
   * which they come, its own at last. With many ranks less is left to do when a late part comes, but
   * more bytes are moved in all; floats may differ in their last bits from launch to launch, and
   * float16 and bfloat16 round at every part. All ranks of an all-reduce still get the same. Ignored
   * elsewhere. */
  int32_t any_order;
  /* A tsrFusedOnto_t: kernels ask tsrTileOnto for the place of every tile, and add those of the peer's
   * rows to its output, where it has stored its own: no part is stored, sent or read besides. It can
   * be among two ranks of one process, for ncclSum of integers, float and double, with one report per
   * tile and no tile over the rows of both ranks. The owner's part comes first in every sum. There
   * `map`, `remote` and the input of launches, which may be NULL, mean nothing, and no tile is
   * reported before the launch. */
  int32_t onto;
  /* With `remote` and `chunks` given: which of each rank's chunks are stored into the memory of peers,
   * bit c for chunk c (T3's remote map); the others are stored in the matrix and copied when their
   * tiles are there (its DMA map). 0: all. */
  uint64_t remote_chunks;
} tsrFusedConfig_t;

/* clang-format off */
#define TSR_FUSED_CONFIG_INITIALIZER \
  { sizeof(tsrFusedConfig_t), tsrFusedReduceScatter, tsrMapDirect, ncclFloat, ncclSum, \
    0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

typedef struct tsrFused* tsrFused_t;

/* Collective: every rank describes the same. Builds, verifies and links the plan; a description
 * that was used and destroyed before is taken up again without. Not inside a group. */
ncclResult_t tsrFusedCreate(const tsrFusedConfig_t* config, ncclComm_t comm, tsrFused_t* op);

/* The same with a plan of the caller's own in place of `config->map`: JSON text, which begins with
 * "{", or the name of a file that holds it. `tessera-plan fused --json` writes the library's, as a
 * start; docs/fusion.md says how tiles and counters belong together. Collective: every rank brings
 * the same plan. `config->chunks` may be 0: the plan's. `remote`, `any_order` and `onto` are taken
 * back.
 * The plan is proven to compute `config->collective` of this matrix, in these tiles, whatever the
 * timing. ncclInvalidArgument where that fails, with the rank, lane and step, or the place in the
 * text; ncclInvalidUsage on the other ranks, or if ranks bring different plans. */
ncclResult_t tsrFusedCreateFromPlan(const char* plan, const tsrFusedConfig_t* config,
                                    ncclComm_t comm, tsrFused_t* op);

/* Local. ncclInvalidUsage while a launch is under way on a healthy communicator. May follow
 * ncclCommDestroy and ncclCommAbort. */
ncclResult_t tsrFusedDestroy(tsrFused_t op);

/* The sides of the operator. `input` and `output` are where the kernels store and read; the same as
 * at the launch. An all-gather's input has tiles but no reports. */
ncclResult_t tsrFusedInput(tsrFused_t op, void* input, tsrTiles* tiles);
ncclResult_t tsrFusedOutput(tsrFused_t op, void* output, tsrTiles* tiles);

/* Begins a launch and returns; tiles may have been reported before. Nothing is reset between
 * launches. Input and output must stay until tsrFusedWait returns; they may be the same memory
 * where the NCCL call allows it.
 * A stream of tsrStreamCreate: its thread runs the steps, what is enqueued on it later runs after
 * the launch, and launches may be enqueued one after the other. Any other stream: threads that
 * report and wait run the steps; ncclInvalidUsage while the launch before is under way. */
ncclResult_t tsrFusedLaunch(tsrFused_t op, const void* input, void* output, cudaStream_t stream);

/* Until all launches are over. Errors as tsrTileWait. */
ncclResult_t tsrFusedWait(tsrFused_t op);
/* ncclSuccess when all launches are over, else ncclInProgress, or the error. Does not wait. */
ncclResult_t tsrFusedQuery(tsrFused_t op);

/* Other leading dimensions, in elements (0: dense), for launches that follow. Local. ncclInvalidUsage
 * while a launch is under way. */
ncclResult_t tsrFusedSetLines(tsrFused_t op, int64_t input_ld, int64_t output_ld);

/* How much of the time of threads that report tiles goes to steps of the collective.
 * share: percent, 0 to 100 (default 50). every: tiles of a chunk between two looks, besides the
 * look when a chunk is complete; a power of two (default 16). Not while tiles are reported. */
ncclResult_t tsrFusedSetBudget(tsrFused_t op, int share, int every);

/* What a launch costs by the library's model, and whether fusing pays: the plan is walked over the
 * links as they are described (emulated ones), taken to be (between hosts) or as fast as memory. */
typedef struct tsrFusedCosts {
  double fused_us;      /* kernels and collective at once */
  double in_order_us;   /* the same, if tiles are made from the first to the last on all ranks */
  double collective_us; /* the best collective alone */
  double unfused_us;    /* one after the other */
  int32_t fuse;         /* 1: fusing is faster, by more than tiles may cost a kernel (3 %) */
  int32_t reserved;
  /* Bytes that this rank's memory reads and writes in a launch, stored tiles included. `merged`: if
   * memory added what is written to it, as T3 counts. */
  uint64_t read_bytes, written_bytes;
  uint64_t merged_read_bytes, merged_written_bytes;
} tsrFusedCosts_t;

/* produce_us: of the kernel that makes the input; consume_us: of the one that uses the output; 0
 * without. Ranks that pass the same get the same times. Takes some milliseconds; local. */
ncclResult_t tsrFusedEstimate(tsrFused_t op, double produce_us, double consume_us,
                              tsrFusedCosts_t* costs);

/* What the operator is, what fusing gains and who waits for what, as text. At most `bytes` bytes, ended by a zero. */
ncclResult_t tsrFusedExplain(tsrFused_t op, char* text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_FUSED_H_ */
