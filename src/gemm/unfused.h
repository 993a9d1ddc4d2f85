// A product and its collective one after the other, by the NCCL calls: what fusing is measured
// against, and what runs where it does not pay.
// Thread safety: pure but for the call's effect.
#pragma once

#include <tessera/fused.h>
#include <tessera/gemm.h>

namespace tessera::gemm {

// Whether this rank's matrices lie as the NCCL calls take them: without gaps, rows that a rank owns
// in one piece, the same number for each. Ranks may differ in it.
bool suits_unfused(const tsrGemmProblem_t& p, tsrFusedCollective_t collective, int ranks);

// The collective of m x n (all-gather: m x k) elements.
ncclResult_t run_collective(ncclComm_t comm, const tsrGemmProblem_t& p,
                            tsrFusedCollective_t collective, int ranks, const void* from, void* to);

}  // namespace tessera::gemm
