#include "gemm/unfused.h"

namespace tessera::gemm {

bool suits_unfused(const tsrGemmProblem_t& p, tsrFusedCollective_t collective, int ranks) {
  const bool rows = p.column_major == 0;
  switch (collective) {
    case tsrFusedAllReduce:
      return p.ldc == (rows ? p.n : p.m);
    case tsrFusedAllGather:
      return (rows != (p.transpose_a != 0)) && p.lda == p.k && p.m % ranks == 0;
    case tsrFusedReduceScatter:
    case tsrFusedAllToAll:
      return rows && p.ldc == p.n && p.m % ranks == 0;
  }
  return false;
}

ncclResult_t run_collective(ncclComm_t comm, const tsrGemmProblem_t& p,
                            tsrFusedCollective_t collective, int ranks, const void* from,
                            void* to) {
  const auto block = static_cast<size_t>(p.m / ranks * p.n);
  switch (collective) {
    case tsrFusedReduceScatter:
      return ncclReduceScatter(from, to, block, p.type, ncclSum, comm, nullptr);
    case tsrFusedAllReduce:
      return ncclAllReduce(from, to, static_cast<size_t>(p.m * p.n), p.type, ncclSum, comm,
                           nullptr);
    case tsrFusedAllToAll:
      return ncclAlltoAll(from, to, block, p.type, comm, nullptr);
    case tsrFusedAllGather:
      return ncclAllGather(from, to, static_cast<size_t>(p.m / ranks * p.k), p.type, comm, nullptr);
  }
  return ncclInvalidArgument;
}

}  // namespace tessera::gemm
