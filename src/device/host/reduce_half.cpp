// Reduction kernels of float16 and bfloat16.
#include "device/host/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/reduce_half.cpp"
#include "hwy/foreach_target.h"
//
#include "device/host/reduce_families.h"
#include "device/host/reduce_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

ReduceFn kernel_half(DataType type, ReduceOp op) {
  return type == DataType::kFloat16 ? floating_kernel<Float16Codec>(op)
                                    : floating_kernel<Bfloat16Codec>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::host {

HWY_EXPORT(kernel_half);
ReduceFn reduce_half(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(kernel_half)(type, op);
}

}  // namespace tessera::host
#endif
