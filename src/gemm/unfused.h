// A product and its collective one after the other, by the NCCL calls: what fusing is measured
// against, and what runs where it does not pay.
// Thread safety: pure but for the call's effect.
#pragma once

#include <tessera/fused.h>
#include <tessera/gemm.h>

#include "gemm/view.h"

namespace tessera::gemm {

// Whether the NCCL calls can do it: rows that a rank owns lie in one piece, the same number for
// each. All ranks find the same: leading dimensions, in which they may differ, do not count.
bool suits_unfused(const tsrGemmProblem_t& p, tsrFusedCollective_t collective, int ranks);

struct Place {
  ncclComm_t comm;
  int rank, ranks;
};

// The collective of the m x n elements of `parts`, which have no gaps, into `c`, which may: then it
// goes by way of `parts` or of memory of its own.
ncclResult_t send_parts(const Place& at, const tsrGemmProblem_t& p, tsrFusedCollective_t collective,
                        const View& parts, const View& c);

// Gathers the rows of `a`, m / ranks each, at `to`, m x k elements without gaps.
ncclResult_t gather_rows(const Place& at, const tsrGemmProblem_t& p, const View& a, char* to);

}  // namespace tessera::gemm
