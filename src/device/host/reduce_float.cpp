// Reduction kernels of float32 and float64.
#include "device/host/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/reduce_float.cpp"
#include "hwy/foreach_target.h"
//
#include "device/host/reduce_families.h"
#include "device/host/reduce_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

ReduceFn kernel_float(DataType type, ReduceOp op) {
  return type == DataType::kFloat32 ? floating_kernel<NativeCodec<float>>(op)
                                    : floating_kernel<NativeCodec<double>>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::host {

HWY_EXPORT(kernel_float);
ReduceFn reduce_float(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(kernel_float)(type, op);
}

}  // namespace tessera::host
#endif
