/* Matrix products fused with a collective, for host ranks. C99 and C++. Link tessera::gemm
 * (libtessera_gemm), which brings OpenBLAS; libnccl does not need it.
 *
 * Every rank of a communicator multiplies its op(A), m x k, with its op(B), k x n. While tiles of
 * the product are made, finished ones are on their way (fused.h). Ranks own runs of m / ranks rows,
 * rounded up; the last ranks may own fewer, or none.
 *
 *   reduce-scatter   C: the rank's own rows of the sum of all products (column-parallel backward,
 *                    row-parallel forward with sequence parallelism)
 *   all-reduce       C: the sum of all products, m x n on every rank
 *   all-to-all       C: m x n; the s-th run of rows comes from the product of rank s, which sends
 *                    its d-th run to rank d. m divides by the ranks; beta is 0
 *   all-gather       A: the rank's own rows of op(A). C: op(A of all ranks) op(B), m x n
 *
 * C = alpha * result + beta * C. In an all-reduce C must be the same on all ranks where beta is not
 * 0. float16 and bfloat16 multiply and add in float32; each product is rounded once before it
 * travels. Sums of float among two ranks of one process are made in C: the owner of a row stores its
 * product, then the other adds to it (`onto` in fused.h).
 *
 * OpenBLAS brings threads of its own: set OPENBLAS_NUM_THREADS=1 where ranks share a machine, and
 * let `threads` below share the tiles.
 *
 * Thread safety: one thread at a time per tsrGemm_t. Calls are collective and block.
 * Errors: as in fused.h; tsrGemmGetLastError has the text. */
#ifndef TESSERA_GEMM_H_
#define TESSERA_GEMM_H_

#include <nccl.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a communicator's products keep between calls: operators and work space, by shape. */
typedef struct tsrGemm* tsrGemm_t;

/* threads: of OpenMP that make tiles, at least 1; 1 where the library was built without it. */
ncclResult_t tsrGemmCreate(ncclComm_t comm, int threads, tsrGemm_t* gemm);
ncclResult_t tsrGemmDestroy(tsrGemm_t gemm);

/* Whether products are fused with their collective. */
typedef enum {
  /* The default: the first six to ten calls of a shape try both, in the order that a model proposes
   * (tsrFusedEstimate), and later calls run what was faster on the slowest rank. */
  tsrGemmChoose = 0,
  tsrGemmFuse = 1,
  /* The product over the whole matrix, then the NCCL call; where the matrices lie as that takes
   * them: rows without gaps, as many for each rank. Elsewhere products are always fused. */
  tsrGemmDoNotFuse = 2
} tsrGemmFusing_t;

/* The same on all ranks, between the same calls. */
ncclResult_t tsrGemmSetFusing(tsrGemm_t gemm, tsrGemmFusing_t fusing);
/* Whether the latest product was fused. */
ncclResult_t tsrGemmFused(tsrGemm_t gemm, int* fused);

/* A product. Transposed: op(X) is the transpose of what is stored. ld: elements from one row
 * (column major: column) of what is stored to the next. */
typedef struct tsrGemmProblem {
  size_t size;         /* TSR_GEMM_PROBLEM_INITIALIZER sets it */
  ncclDataType_t type; /* ncclFloat, ncclHalf or ncclBfloat16: of A, B and C */
  int32_t column_major;
  int32_t transpose_a, transpose_b;
  int64_t m, n, k; /* the same on all ranks, but k may differ between them in what reduces */
  float alpha, beta;
  const void* a;
  const void* b;
  void* c;
  int64_t lda, ldb, ldc;
} tsrGemmProblem_t;

/* clang-format off */
#define TSR_GEMM_PROBLEM_INITIALIZER \
  { sizeof(tsrGemmProblem_t), ncclFloat, 0, 0, 0, 0, 0, 0, 1, 0, NULL, NULL, NULL, 0, 0, 0 }
/* clang-format on */

ncclResult_t tsrGemmReduceScatter(tsrGemm_t gemm, const tsrGemmProblem_t* problem);
ncclResult_t tsrGemmAllReduce(tsrGemm_t gemm, const tsrGemmProblem_t* problem);
ncclResult_t tsrGemmAllToAll(tsrGemm_t gemm, const tsrGemmProblem_t* problem);
ncclResult_t tsrAllGatherGemm(tsrGemm_t gemm, const tsrGemmProblem_t* problem);

/* Why the last call of this thread failed. */
const char* tsrGemmGetLastError(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_GEMM_H_ */
