// The choice of a kernel, and the pre-scale of Avg.
#include "device/host/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/host/reduce_families.h"

namespace tessera::host {
namespace {

// The bits of a positive value no larger than the type's largest, to the nearest, ties to even.
uint16_t small_float_bits(double value, int mantissa, int bias) {
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double places = std::nearbyint(std::ldexp(value, mantissa - exponent));
  return static_cast<uint16_t>(((exponent + bias - 1) << mantissa) + static_cast<int>(places));
}

template <class T>
void put(T value, void* to) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

ReduceFn reduce_kernel(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
      return reduce_integer8(type, op);
    case DataType::kInt32:
    case DataType::kUint32:
      return reduce_integer32(type, op);
    case DataType::kInt64:
    case DataType::kUint64:
      return reduce_integer64(type, op);
    case DataType::kFloat32:
    case DataType::kFloat64:
      return reduce_float(type, op);
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return reduce_half(type, op);
    case DataType::kFloat8E4M3:
    case DataType::kFloat8E5M2:
      return reduce_fp8(type, op);
  }
  return nullptr;
}

void reciprocal(DataType type, int n, void* scale) {
  const double value = 1.0 / n;
  switch (type) {
    case DataType::kFloat64:
      return put(value, scale);
    case DataType::kFloat32:
      return put(static_cast<float>(value), scale);
    case DataType::kFloat16:
      return put(small_float_bits(value, 10, 15), scale);
    case DataType::kBfloat16:
      return put(small_float_bits(value, 7, 127), scale);
    case DataType::kFloat8E4M3:
      return put(static_cast<uint8_t>(small_float_bits(value, 3, 7)), scale);
    case DataType::kFloat8E5M2:
      return put(static_cast<uint8_t>(small_float_bits(value, 2, 15)), scale);
    default:  // integers divide afterwards; see ReduceArgs::divisor
      std::memset(scale, 0, size_of(type));
      return;
  }
}

}  // namespace tessera::host
