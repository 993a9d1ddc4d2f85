// Reduction kernels of the 8-bit floating types.
#include "device/host/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/reduce_fp8.cpp"
#include "hwy/foreach_target.h"
//
#include "device/host/reduce_families.h"
#include "device/host/reduce_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

ReduceFn kernel_fp8(DataType type, ReduceOp op) {
  return type == DataType::kFloat8E4M3 ? floating_kernel<SmallFloatCodec<Float8E4M3Format>>(op)
                                       : floating_kernel<SmallFloatCodec<Float8E5M2Format>>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::host {

HWY_EXPORT(kernel_fp8);
ReduceFn reduce_fp8(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(kernel_fp8)(type, op);
}

}  // namespace tessera::host
#endif
