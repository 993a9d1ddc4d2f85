// The layouts of the floating types of 16 and 8 bits that are converted by integer arithmetic.
//
//   sign at kSignBit | exponent, biased by kBias | kMantissa bits
//
// Float32 values whose magnitude, as bits, is at least kOverflow become kOverflowResult: infinity
// where rounding passes the largest finite value, or that value itself for the saturating types.
// Magnitudes of kInfinity and above are infinity (exactly, unless kHasInfinity is false) or NaN.
#pragma once

#include <cstdint>

namespace tessera::host {

struct Float16Format {
  using Bits = uint16_t;
  static constexpr int kMantissa = 10;
  static constexpr int kBias = 15;
  static constexpr int kSignBit = 15;
  static constexpr uint32_t kMagnitude = 0x7FFF;
  static constexpr uint32_t kInfinity = 0x7C00;
  static constexpr bool kHasInfinity = true;
  static constexpr uint32_t kNan = 0x7E00;
  static constexpr uint32_t kOverflow = 0x477FF000;  // 65520: half-way from 65504 to 65536
  static constexpr uint32_t kOverflowResult = kInfinity;
  static constexpr float kSmallest = 0x1p-24f;
};

// No infinity: 0x7F, the only NaN, is where infinity and NaN begin. Saturates to 448.
struct Float8E4M3Format {
  using Bits = uint8_t;
  static constexpr int kMantissa = 3;
  static constexpr int kBias = 7;
  static constexpr int kSignBit = 7;
  static constexpr uint32_t kMagnitude = 0x7F;
  static constexpr uint32_t kInfinity = 0x7F;
  static constexpr bool kHasInfinity = false;
  static constexpr uint32_t kNan = 0x7F;
  static constexpr uint32_t kOverflow = 0x43E00000;  // 448
  static constexpr uint32_t kOverflowResult = 0x7E;
  static constexpr float kSmallest = 0x1p-9f;
};

// Has infinities, but rounding never makes one: saturates to 57344.
struct Float8E5M2Format {
  using Bits = uint8_t;
  static constexpr int kMantissa = 2;
  static constexpr int kBias = 15;
  static constexpr int kSignBit = 7;
  static constexpr uint32_t kMagnitude = 0x7F;
  static constexpr uint32_t kInfinity = 0x7C;
  static constexpr bool kHasInfinity = true;
  static constexpr uint32_t kNan = 0x7E;
  static constexpr uint32_t kOverflow = 0x47600000;  // 57344
  static constexpr uint32_t kOverflowResult = 0x7B;
  static constexpr float kSmallest = 0x1p-16f;
};

}  // namespace tessera::host
