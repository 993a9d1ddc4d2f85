// Kernels of the integer types: as those of the floating types, and with a divisor. Included once
// per instruction set.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "device/host/reduce_kernel-inl.h"

#if defined(TESSERA_REDUCE_INTEGER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_REDUCE_INTEGER_INL_H
#undef TESSERA_REDUCE_INTEGER_INL_H
#else
#define TESSERA_REDUCE_INTEGER_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

// Towards zero. Up to 32 bits by float64, which is exact: a quotient that is no integer is further
// from the next one than the rounding error.
template <class T>
void divide(uint8_t* p, size_t count, int64_t divisor) {
  for (size_t i = 0; i < count; ++i, p += sizeof(T)) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    if constexpr (sizeof(T) < 8) {
      value = static_cast<T>(static_cast<double>(value) / static_cast<double>(divisor));
    } else {
      value = static_cast<T>(value / static_cast<T>(divisor));
    }
    std::memcpy(p, &value, sizeof(T));
  }
}

// Block by block, so that the sums are still in the nearest cache when they are divided.
template <class T, class Codec, class Op>
HWY_NOINLINE void reduce_divided(const ReduceArgs& args) {
  constexpr size_t kBlock = 4096 / sizeof(T);
  const auto at = [&args](int d, size_t i) {
    return static_cast<uint8_t*>(args.dsts[d]) + i * sizeof(T);
  };
  for (size_t i = 0; i < args.count; i += kBlock) {
    const size_t size = std::min(kBlock, args.count - i);
    Pass<Codec, Op, 0, true>::template run<false>(args, i, i + size);
    divide<T>(at(0, i), size, args.divisor);
    for (int d = 1; d < args.num_dsts; ++d)
      if (args.dsts[d] != args.dsts[0]) std::memcpy(at(d, i), at(0, i), size * sizeof(T));
  }
}

template <class T, class Codec, class Op>
void reduce_integer(const ReduceArgs& args) {
  if (args.divisor > 1) return reduce_divided<T, Codec, Op>(args);
  if (args.scales != nullptr) return reduce_scaled<Codec, Op>(args);
  reduce_plain<Codec, Op>(args);
}

// Sums and products of either sign have the same bits, and unsigned ones wrap by definition.
template <class T>
ReduceFn integer_kernel(ReduceOp op) {
  using Wrapping = NativeCodec<std::make_unsigned_t<T>>;
  switch (op) {
    case ReduceOp::kSum:
      return reduce_integer<T, Wrapping, Sum>;
    case ReduceOp::kProd:
      return reduce_integer<T, Wrapping, Prod>;
    case ReduceOp::kMax:
      return reduce_integer<T, NativeCodec<T>, Max>;
    case ReduceOp::kMin:
      return reduce_integer<T, NativeCodec<T>, Min>;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();
#endif
