#include "gemm/unfused.h"

#include <vector>

namespace tessera::gemm {
namespace {

ncclResult_t run_collective(const Place& at, const tsrGemmProblem_t& p,
                            tsrFusedCollective_t collective, const void* from, void* to) {
  const auto block = static_cast<size_t>(p.m / at.ranks * p.n);
  switch (collective) {
    case tsrFusedReduceScatter:
      return ncclReduceScatter(from, to, block, p.type, ncclSum, at.comm, nullptr);
    case tsrFusedAllReduce:
      return ncclAllReduce(from, to, static_cast<size_t>(p.m * p.n), p.type, ncclSum, at.comm,
                           nullptr);
    case tsrFusedAllToAll:
      return ncclAlltoAll(from, to, block, p.type, at.comm, nullptr);
    case tsrFusedAllGather:
      break;  // gather_rows()
  }
  return ncclInvalidArgument;
}

}  // namespace

bool suits_unfused(const tsrGemmProblem_t& p, tsrFusedCollective_t collective, int ranks) {
  const bool rows = p.column_major == 0;
  switch (collective) {
    case tsrFusedAllReduce:
      return true;
    case tsrFusedAllGather:
      return (rows != (p.transpose_a != 0)) && p.m % ranks == 0;
    case tsrFusedReduceScatter:
    case tsrFusedAllToAll:
      return rows && p.m % ranks == 0;
  }
  return false;
}

ncclResult_t send_parts(const Place& at, const tsrGemmProblem_t& p, tsrFusedCollective_t collective,
                        const View& parts, const View& c) {
  const bool scatters = collective == tsrFusedReduceScatter;
  const int64_t rows = scatters ? p.m / at.ranks : p.m;
  if (c.ld == (c.row_major ? p.n : rows))
    return run_collective(at, p, collective, parts.base, c.base);
  std::vector<char> memory;
  View landing = parts.from(scatters ? at.rank * rows : 0, 0);  // in place
  if (collective == tsrFusedAllToAll) {
    memory.resize(static_cast<size_t>(p.m * p.n) * c.element_bytes());
    landing.base = memory.data();
  }
  const ncclResult_t result = run_collective(at, p, collective, parts.base, landing.base);
  if (result == ncclSuccess) copy(c, landing, rows, p.n, 1);
  return result;
}

ncclResult_t gather_rows(const Place& at, const tsrGemmProblem_t& p, const View& a, char* to) {
  const int64_t rows = p.m / at.ranks;
  const void* from = a.base;
  if (a.ld != p.k) {
    const View own = View{to, p.k, true, p.type}.from(at.rank * rows, 0);
    copy(own, a, rows, p.k, 1);
    from = own.base;  // in place
  }
  return ncclAllGather(from, to, static_cast<size_t>(rows * p.k), p.type, at.comm, nullptr);
}

}  // namespace tessera::gemm
