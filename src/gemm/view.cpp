#include "gemm/view.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace tessera::gemm {
namespace {

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to 65536 or more: infinity
  if (magnitude < 0x38800000) {                       // below 2^-14: a multiple of 2^-24
    const float steps = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24F);
    return sign | static_cast<uint16_t>(steps);
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
}

float load(const char* from, ncclDataType_t type) {
  if (type == ncclFloat) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return type == ncclHalf ? half_to_float(bits) : bfloat16_to_float(bits);
}

void store(char* to, ncclDataType_t type, float value) {
  if (type == ncclFloat) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const uint16_t bits = type == ncclHalf ? float_to_half(value) : float_to_bfloat16(value);
  std::memcpy(to, &bits, sizeof bits);
}

}  // namespace

void copy(const View& to, const View& from, int64_t rows, int64_t cols, float scale) {
  // Along the lines of the destination.
  if (!to.row_major) return copy(to.transposed(), from.transposed(), cols, rows, scale);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col)
      store(to.at(row, col), to.type, load(from.at(row, col), from.type) * scale);
  }
}

}  // namespace tessera::gemm
