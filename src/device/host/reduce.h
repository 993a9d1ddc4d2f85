// Reduction kernels on host memory: combine any number of sources element by element.
//
//   dst[d][i] = post( pre0(src[0][i]) op pre1(src[1][i]) op ... )    for every dst d and element i
//
// Combination is from left to right in the order of the sources, so that results are reproducible.
// float16, bfloat16 and the two fp8 types convert to float32, accumulate there and round once, to
// nearest, ties to even. Integers wrap. Max/Min of NaN: unspecified. Rounding to fp8 saturates as
// CUDA's default conversion does: beyond 448 (e4m3, which has no infinity) or 57344 (e5m2),
// infinity included, the result is the largest finite value of that sign. NaN stays NaN.
//
// pre:  source j is multiplied by scale[j] first, rounded to the type as NCCL's PreMulSum and float
//       Avg do, unless scale is null or scale[j] is null. A scale points at one element of the
//       type.
// post: integers are divided by `divisor`, towards zero, when divisor > 1. Floats ignore it.
//
// Aliasing: any dst may equal any src exactly (same address); other overlap is undefined. No
// alignment is needed. Bytes outside [ptr, ptr + count * size) are neither read nor written. Only
// one dst is usual; several cost one store each. With one source and no scale it is a copy of the
// bits (use copy.h for plain copies).
//
// Outputs from 1 MiB per call whose dst is no src are stored past the caches and fenced, so that a
// later release publishes them.
// Thread safety: pure functions; kernels are chosen once per process by CPU features.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace tessera::host {

struct ReduceArgs {
  void* const* dsts;
  int num_dsts;
  const void* const* srcs;
  int num_srcs;
  const void* const* scales;  // null, or num_srcs pointers each null or to one element
  size_t count;               // elements
  int64_t divisor;            // 1: none
};

// kAvg and kPreMulSum are sums with scale/divisor set by the caller: only kSum, kProd, kMax, kMin
// are valid here.
using ReduceFn = void (*)(const ReduceArgs&);
ReduceFn reduce_kernel(DataType type, ReduceOp op);

// Writes T(1 / n) of a floating type to `scale` (8 bytes suffice): the pre-scale of Avg.
void reciprocal(DataType type, int n, void* scale);

}  // namespace tessera::host
