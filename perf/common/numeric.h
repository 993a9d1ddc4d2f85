// The bits of every element type: exact encoding from double, and decoding.
//
// encode() rounds to nearest, ties to even, and expects a finite value within the type's range: the
// generators of verify.h produce no other. Pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tessera::perf {

// A binary floating format of at most 16 bits. kFinite: no infinities; only the all-ones pattern is
// NaN (e4m3).
template <class BitsT, int kExponentBits, int kMantissaBits, bool kFinite>
struct SmallFloat {
  using Bits = BitsT;
  static constexpr bool kInteger = false;
  static constexpr int kDigits = kMantissaBits + 1;  // integers up to 2^kDigits are exact
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kProductBudget = kBias - 1;  // 2^-budget .. 2^budget are normal numbers
  static constexpr int kMantissa = kMantissaBits;
  static constexpr Bits kSign = Bits(1) << (kExponentBits + kMantissaBits);
  static constexpr Bits kExponentMask = Bits((Bits(1) << kExponentBits) - 1) << kMantissaBits;

  static Bits encode(double value) {
    const Bits sign = std::signbit(value) ? kSign : 0;
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    const int exponent = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023;
    const int shifted = exponent < 1 - kBias ? 1 - kBias : exponent;
    const double per_unit = std::bit_cast<double>(uint64_t(1023 - (shifted - kMantissaBits)) << 52);
    constexpr double kRound = 4503599627370496.0;  // 2^52: adding it rounds to an integer
    const auto units = static_cast<int64_t>(magnitude * per_unit + kRound - kRound);
    // Normal numbers hold 2^mantissa implicitly; a carry out of the mantissa rolls into the
    // exponent by itself.
    const int64_t base = int64_t(shifted + kBias - 1) << kMantissaBits;
    return static_cast<Bits>(sign | static_cast<Bits>(base + units));
  }

  static double decode(Bits bits) {
    const int exponent = (bits & kExponentMask) >> kMantissaBits;
    const int mantissa = bits & ((1 << kMantissaBits) - 1);
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - kBias - kMantissaBits)
                                           : std::ldexp(mantissa + (1 << kMantissaBits),
                                                        exponent - kBias - kMantissaBits);
    return (bits & kSign) != 0 ? -magnitude : magnitude;
  }

  static bool finite(Bits bits) {
    if constexpr (kFinite) return (bits & Bits(~kSign)) != Bits(kSign - 1);
    return (bits & kExponentMask) != kExponentMask;
  }
};

using Half = SmallFloat<uint16_t, 5, 10, false>;
using Bfloat16 = SmallFloat<uint16_t, 8, 7, false>;
using Float8E4M3 = SmallFloat<uint8_t, 4, 3, true>;
using Float8E5M2 = SmallFloat<uint8_t, 5, 2, false>;

template <class T, class BitsT, int kDigitsT, int kBudgetT>
struct NativeFloat {
  using Bits = BitsT;
  static constexpr bool kInteger = false;
  static constexpr int kDigits = kDigitsT;
  static constexpr int kProductBudget = kBudgetT;
  static constexpr int kMantissa = kDigitsT > 24 ? 24 : 20;  // mantissa bits that products use
  static constexpr Bits kSign = Bits(1) << (sizeof(Bits) * 8 - 1);

  static Bits encode(double value) { return std::bit_cast<Bits>(static_cast<T>(value)); }
  static double decode(Bits bits) { return static_cast<double>(std::bit_cast<T>(bits)); }
  static bool finite(Bits bits) { return std::isfinite(std::bit_cast<T>(bits)); }
};

using Float32 = NativeFloat<float, uint32_t, 24, 100>;
using Float64 = NativeFloat<double, uint64_t, 50, 500>;

template <class T>
struct Integer {
  using Bits = std::make_unsigned_t<T>;
  using Value = T;
  static constexpr bool kInteger = true;
};

}  // namespace tessera::perf
