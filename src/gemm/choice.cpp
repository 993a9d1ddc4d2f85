#include "gemm/choice.h"

#include <algorithm>

namespace tessera::gemm {
namespace {

void keep_least(double value, bool first, double* least) {
  *least = first ? value : std::min(*least, value);
}

// The greatest of all ranks.
ncclResult_t agree(ncclComm_t comm, double* values, size_t count) {
  return ncclAllReduce(values, values, count, ncclDouble, ncclMax, comm, nullptr);
}

}  // namespace

ncclResult_t Choice::open(ncclComm_t comm, bool suits_unfused) {
  if (open_) return ncclSuccess;
  double unsuitable = suits_unfused ? 0 : 1;
  const ncclResult_t agreed = agree(comm, &unsuitable, 1);
  open_ = true;
  suits_ = unsuitable == 0;
  if (suits_) return agreed;
  call_ = 2 * kTrials;
  fuses_ = true;
  return agreed;
}

ncclResult_t Choice::record(ncclComm_t comm, tsrFused_t op, bool consumes, const CallTimes& times) {
  if (settled()) return ncclSuccess;
  const bool was_fused = fuses();
  const int trial = call_++ % kTrials;
  if (trial > 0) {
    keep_least(times.total, trial == 1, was_fused ? &fused_ : &unfused_);
    if (!was_fused) keep_least(times.product, trial == 1, &product_);
  }
  if (trial + 1 < kTrials) return ncclSuccess;
  if (was_fused) {
    const ncclResult_t agreed = agree(comm, &fused_, 1);
    fuses_ = fused_ < unfused_;
    return agreed;
  }
  double values[] = {product_, unfused_};
  const ncclResult_t agreed = agree(comm, values, 2);
  product_ = values[0];
  unfused_ = values[1];
  return agreed == ncclSuccess ? propose(op, consumes) : agreed;
}

ncclResult_t Choice::propose(tsrFused_t op, bool consumes) {
  tsrFusedCosts_t costs;
  const ncclResult_t result =
      tsrFusedEstimate(op, consumes ? 0 : product_, consumes ? product_ : 0, &costs);
  if (result != ncclSuccess) return result;
  fused_ = costs.fused_us;
  if (costs.fused_us >= unfused_) call_ = 2 * kTrials;  // not worth a trial
  return ncclSuccess;
}

}  // namespace tessera::gemm
