#include "comm/reduction.h"

#include <algorithm>

namespace tessera {
namespace {

bool is_integer(DataType type) { return type <= DataType::kUint64; }

}  // namespace

const Reduction& ReductionSetup::prepare(const Call& call, int ranks) {
  reduction_ = {};
  if (!reduces(call.collective)) return reduction_;
  const bool scales = call.op == ReduceOp::kPreMulSum || call.op == ReduceOp::kAvg;
  reduction_.kernel = host::reduce_kernel(call.type, scales ? ReduceOp::kSum : call.op);
  if (call.op == ReduceOp::kPreMulSum) {
    std::fill(scalars_.begin(), scalars_.end(), call.scalar);
    for (size_t i = 0; i < scales_.size(); ++i) scales_[i] = &scalars_[i];
    reduction_.scales = scales_.data();
  } else if (call.op == ReduceOp::kAvg && is_integer(call.type)) {
    reduction_.divisor = ranks;
  } else if (call.op == ReduceOp::kAvg) {
    host::reciprocal(call.type, ranks, &reciprocal_);
    std::fill(scales_.begin(), scales_.end(), &reciprocal_);
    reduction_.scales = scales_.data();
  }
  return reduction_;
}

}  // namespace tessera
