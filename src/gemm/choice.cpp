#include "gemm/choice.h"

#include <algorithm>

namespace tessera::gemm {
namespace {

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
  call_ = kSettled;
  fuses_ = true;
  return agreed;
}

ncclResult_t Choice::record(ncclComm_t comm, tsrFused_t op, bool consumes, const CallTimes& times) {
  if (settled()) return ncclSuccess;
  const bool first = call_ == 0 || call_ == kFused;
  if (!first) keep(fuses(), times);
  ++call_;
  if (call_ == kAgain || settled()) return compare(comm);
  if (call_ != kFused) return ncclSuccess;
  double values[] = {product_, unfused_};
  const ncclResult_t agreed = agree(comm, values, 2);
  product_ = values[0];
  unfused_ = values[1];
  return agreed == ncclSuccess ? propose(op, consumes) : agreed;
}

void Choice::keep(bool fused, const CallTimes& times) {
  double& least = fused ? fused_ : unfused_;
  least = std::min(least, times.total);
  if (!fused) product_ = std::min(product_, times.product);
}

// On all ranks alike: the slowest one's times count.
ncclResult_t Choice::compare(ncclComm_t comm) {
  double values[] = {unfused_, fused_};
  const ncclResult_t agreed = agree(comm, values, 2);
  const auto [least, most] = std::minmax(values[0], values[1]);
  if (most >= kClose * least) call_ = kSettled;
  fuses_ = values[1] < values[0];
  return agreed;
}

ncclResult_t Choice::propose(tsrFused_t op, bool consumes) {
  tsrFusedCosts_t costs;
  const ncclResult_t result =
      tsrFusedEstimate(op, consumes ? 0 : product_, consumes ? product_ : 0, &costs);
  if (result != ncclSuccess) return result;
  if (costs.fused_us >= unfused_) call_ = kSettled;  // not worth a trial
  return ncclSuccess;
}

}  // namespace tessera::gemm
