// What reductions must yield, computed one element at a time and without the library's conversions:
// small floats are looked up in tables of all their values, and rounding searches the nearest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/types.h"

namespace tessera::reference {

// The layout of a floating type of at most 16 bits.
struct SmallFloat {
  int mantissa;
  int exponent;
  bool saturates;     // too large becomes the largest finite value, else infinity
  bool has_infinity;  // else the all-ones exponent holds ordinary values, but for all ones
                      // throughout

  int bits() const { return 1 + exponent + mantissa; }
  uint32_t sign() const { return 1u << (bits() - 1); }
  uint32_t infinity() const { return ((1u << exponent) - 1) << mantissa; }
  // Non-negative bit patterns below are finite.
  uint32_t finite_end() const { return has_infinity ? infinity() : sign() - 1; }
};

inline std::optional<SmallFloat> small_float(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return SmallFloat{10, 5, false, true};
    case DataType::kBfloat16:
      return SmallFloat{7, 8, false, true};
    case DataType::kFloat8E4M3:
      return SmallFloat{3, 4, true, false};
    case DataType::kFloat8E5M2:
      return SmallFloat{2, 5, true, true};
    default:
      return std::nullopt;
  }
}

class Converter {
 public:
  explicit Converter(SmallFloat format) : format_(format) {
    const int bias = (1 << (format.exponent - 1)) - 1;
    // One more than the finite values: the power of two that comes next, where rounding to infinity
    // begins to tie.
    for (uint32_t bits = 0; bits <= format.finite_end(); ++bits) {
      const int exponent = static_cast<int>(bits >> format.mantissa);
      const int fraction = static_cast<int>(bits & ((1u << format.mantissa) - 1));
      const int hidden = exponent == 0 ? 0 : 1 << format.mantissa;
      values_.push_back(std::ldexp(static_cast<double>(hidden + fraction),
                                   std::max(exponent, 1) - bias - format.mantissa));
    }
  }

  float decode(uint32_t bits) const {
    const uint32_t magnitude = bits & (format_.sign() - 1);
    float value = 0;
    if (magnitude < format_.finite_end()) {
      value = static_cast<float>(values_[magnitude]);
    } else if (format_.has_infinity && magnitude == format_.infinity()) {
      value = std::numeric_limits<float>::infinity();
    } else {
      value = std::numeric_limits<float>::quiet_NaN();
    }
    return (bits & format_.sign()) != 0 ? -value : value;
  }

  uint32_t encode(float value) const {
    const uint32_t sign = std::signbit(value) ? format_.sign() : 0;
    if (std::isnan(value)) return sign | (format_.sign() - 1);
    const uint32_t end = format_.finite_end();
    const double magnitude = std::fabs(static_cast<double>(value));
    if (format_.saturates && magnitude >= values_[end - 1]) return sign | (end - 1);
    if (magnitude >= values_[end]) return sign | end;
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    const auto below = static_cast<uint32_t>(above - values_.begin()) - 1;
    const double to_below = magnitude - values_[below];  // both exact: neighbours within a factor
    const double to_above = *above - magnitude;          // of two, or multiples of a last place
    if (to_below != to_above) return sign | (to_below < to_above ? below : below + 1);
    return sign | (below % 2 == 0 ? below : below + 1);
  }

 private:
  SmallFloat format_;
  std::vector<double> values_;
};

inline const Converter& converter(DataType type) {
  static const Converter float16(*small_float(DataType::kFloat16));
  static const Converter bfloat16(*small_float(DataType::kBfloat16));
  static const Converter e4m3(*small_float(DataType::kFloat8E4M3));
  static const Converter e5m2(*small_float(DataType::kFloat8E5M2));
  switch (type) {
    case DataType::kFloat16:
      return float16;
    case DataType::kBfloat16:
      return bfloat16;
    case DataType::kFloat8E4M3:
      return e4m3;
    default:
      return e5m2;
  }
}

inline bool is_signed_integer(DataType type) {
  return type == DataType::kInt8 || type == DataType::kInt32 || type == DataType::kInt64;
}
inline bool is_integer(DataType type) {
  return is_signed_integer(type) || type == DataType::kUint8 || type == DataType::kUint32 ||
         type == DataType::kUint64;
}

// Elements travel as raw bits in the low bytes of a word.
inline uint64_t load(DataType type, const uint8_t* p) {
  uint64_t raw = 0;
  std::memcpy(&raw, p, size_of(type));
  return raw;
}
inline void store(DataType type, uint64_t raw, uint8_t* p) { std::memcpy(p, &raw, size_of(type)); }

template <class To, class From>
To bits_as(From from) {
  To to{};
  std::memcpy(&to, &from, std::min(sizeof(to), sizeof(from)));
  return to;
}

inline double as_double(DataType type, uint64_t raw) {
  if (type == DataType::kFloat32) return bits_as<float>(raw);
  if (type == DataType::kFloat64) return bits_as<double>(raw);
  return converter(type).decode(static_cast<uint32_t>(raw));
}

// Equal bits, equal values (zeros of either sign), or both NaN.
inline bool same(DataType type, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (is_integer(type)) return false;
  const double x = as_double(type, a);
  const double y = as_double(type, b);
  return x == y || (std::isnan(x) && std::isnan(y));
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return a < b ? b : a;
    default:
      return b < a ? b : a;
  }
}

// Sign- or zero-extended to 64 bits, so that wrapping arithmetic and comparisons come out right.
inline int64_t extended(DataType type, uint64_t raw) {
  const int unused = 64 - 8 * static_cast<int>(size_of(type));
  if (is_signed_integer(type)) return static_cast<int64_t>(raw << unused) >> unused;
  return static_cast<int64_t>(raw << unused >> unused);
}

inline uint64_t reduce_integer(DataType type, ReduceOp op, const std::vector<uint64_t>& sources,
                               const std::vector<std::optional<uint64_t>>& scales,
                               int64_t divisor) {
  int64_t total = 0;
  for (size_t j = 0; j < sources.size(); ++j) {
    uint64_t x = sources[j];
    if (j < scales.size() && scales[j]) x *= *scales[j];
    const int64_t next = extended(type, x);
    if (j == 0) {
      total = next;
    } else if (op == ReduceOp::kSum || op == ReduceOp::kProd || !is_signed_integer(type)) {
      total = static_cast<int64_t>(
          combine(op, static_cast<uint64_t>(total), static_cast<uint64_t>(next)));
    } else {
      total = combine(op, total, next);
    }
  }
  total = extended(type, static_cast<uint64_t>(total));
  if (divisor <= 1) return static_cast<uint64_t>(total);
  if (is_signed_integer(type)) return static_cast<uint64_t>(total / divisor);
  return static_cast<uint64_t>(total) / static_cast<uint64_t>(divisor);
}

template <class T>
uint64_t reduce_native(ReduceOp op, const std::vector<uint64_t>& sources,
                       const std::vector<std::optional<uint64_t>>& scales) {
  T total = 0;
  for (size_t j = 0; j < sources.size(); ++j) {
    volatile T x = bits_as<T>(sources[j]);  // volatile: the product is rounded by itself
    if (j < scales.size() && scales[j]) x = x * bits_as<T>(*scales[j]);
    total = j == 0 ? T{x} : combine<T>(op, total, x);
  }
  return bits_as<uint64_t>(total);
}

inline uint64_t reduce_small(DataType type, ReduceOp op, const std::vector<uint64_t>& sources,
                             const std::vector<std::optional<uint64_t>>& scales) {
  const Converter& convert = converter(type);
  const auto decode = [&](uint64_t raw) { return convert.decode(static_cast<uint32_t>(raw)); };
  const bool scaled = !scales.empty() && scales[0];
  if (sources.size() == 1 && !scaled) return sources[0];
  float total = 0;
  for (size_t j = 0; j < sources.size(); ++j) {
    float x = decode(sources[j]);
    if (j < scales.size() && scales[j]) x = decode(convert.encode(x * decode(*scales[j])));
    total = j == 0 ? x : combine(op, total, x);
  }
  return convert.encode(total);
}

inline uint64_t reduce(DataType type, ReduceOp op, const std::vector<uint64_t>& sources,
                       const std::vector<std::optional<uint64_t>>& scales = {},
                       int64_t divisor = 1) {
  uint64_t raw = 0;
  if (is_integer(type)) {
    raw = reduce_integer(type, op, sources, scales, divisor);
  } else if (type == DataType::kFloat32) {
    raw = reduce_native<float>(op, sources, scales);
  } else if (type == DataType::kFloat64) {
    raw = reduce_native<double>(op, sources, scales);
  } else {
    raw = reduce_small(type, op, sources, scales);
  }
  const int unused = 64 - 8 * static_cast<int>(size_of(type));
  return raw << unused >> unused;
}

}  // namespace tessera::reference
