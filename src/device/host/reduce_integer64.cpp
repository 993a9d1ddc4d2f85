// Reduction kernels of the 64-bit integers.
#include "device/host/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/reduce_integer64.cpp"
#include "hwy/foreach_target.h"
//
#include "device/host/reduce_families.h"
#include "device/host/reduce_integer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

ReduceFn kernel_integer64(DataType type, ReduceOp op) {
  return type == DataType::kInt64 ? integer_kernel<int64_t>(op) : integer_kernel<uint64_t>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::host {

HWY_EXPORT(kernel_integer64);
ReduceFn reduce_integer64(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(kernel_integer64)(type, op);
}

}  // namespace tessera::host
#endif
