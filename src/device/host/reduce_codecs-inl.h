// How elements of each type become vectors that can be combined, and back. Included once per
// instruction set.
//
// A codec handles K consecutive elements at a time, K a power of two up to kMaxLanes:
//   Lane           the stored type
//   kIsLight       conversion is cheap: memory bounds the kernel, and variants of it pay
//   Acc<K>         K elements in the form in which they accumulate
//   load<K>        from any address
//   store<K>       rounds once; Stream: past the caches, `p` then aligned to K elements
//   scale<K>       one element, broadcast
//   scaled<K>      x * s rounded to the type, still in accumulating form
//   combine<Op,K>  x op y
// Single elements (K = 1) go through memcpy: some targets would dereference a misaligned pointer
// otherwise.
#include <cstring>

#include "device/host/reduce_ops-inl.h"
#include "device/host/small_float.h"

#if defined(TESSERA_REDUCE_CODECS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_REDUCE_CODECS_INL_H
#undef TESSERA_REDUCE_CODECS_INL_H
#else
#define TESSERA_REDUCE_CODECS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

template <class T, int K>
HWY_INLINE hn::Vec<hn::FixedTag<T, K>> load_lanes(const uint8_t* p) {
  const hn::FixedTag<T, K> d;
  if constexpr (K == 1) {
    T lane;
    std::memcpy(&lane, p, sizeof(T));
    return hn::Set(d, lane);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(p));
  }
}

template <class T, int K, bool kStream>
HWY_INLINE void store_lanes(hn::Vec<hn::FixedTag<T, K>> v, uint8_t* p) {
  const hn::FixedTag<T, K> d;
  if constexpr (K == 1) {
    const T lane = hn::GetLane(v);
    std::memcpy(p, &lane, sizeof(T));
  } else if constexpr (kStream && K * sizeof(T) >= 16) {
    hn::Stream(v, d, reinterpret_cast<T*>(p));
  } else {
    hn::StoreU(v, d, reinterpret_cast<T*>(p));
  }
}

// A zero that the compiler cannot see. Or-ing it to a product keeps the product from being fused
// with the sum that follows: it must be rounded on its own, and compilers contract vector products
// too.
inline const volatile uint64_t unseen_zero = 0;

// Types that the vector unit adds as they are.
template <class T>
struct NativeCodec {
  using Lane = T;
  static constexpr int kMaxLanes = HWY_LANES(T);
  static constexpr bool kIsLight = true;
  template <int K>
  using Acc = hn::Vec<hn::FixedTag<T, K>>;

  template <int K>
  static HWY_INLINE Acc<K> load(const uint8_t* p) {
    return load_lanes<T, K>(p);
  }
  template <int K, bool kStream>
  static HWY_INLINE void store(Acc<K> v, uint8_t* p) {
    store_lanes<T, K, kStream>(v, p);
  }
  template <int K>
  static HWY_INLINE Acc<K> scale(const uint8_t* p) {
    return hn::Set(hn::FixedTag<T, K>(), hn::GetLane(load_lanes<T, 1>(p)));
  }
  template <int K>
  static HWY_INLINE Acc<K> scaled(Acc<K> x, Acc<K> s) {
    const Acc<K> product = multiply(x, s);
    if constexpr (!hwy::IsFloat<T>()) return product;
    const hn::FixedTag<hwy::MakeUnsigned<T>, K> bits;
    const auto zero = hn::Set(bits, static_cast<hwy::MakeUnsigned<T>>(unseen_zero));
    return hn::BitCast(hn::FixedTag<T, K>(), hn::Or(hn::BitCast(bits, product), zero));
  }
  template <class Op, int K>
  static HWY_INLINE Acc<K> combine(Acc<K> a, Acc<K> b) {
    return Op::apply(a, b);
  }
};

// bfloat16: two neighbours share a 32-bit lane, so that widening is a shift for the even and a mask
// for the odd one.
struct Bfloat16Codec {
  using Lane = uint16_t;
  static constexpr int kMaxLanes = HWY_LANES(uint16_t);
  static constexpr bool kIsLight = true;
  template <int K>
  using Floats = hn::FixedTag<float, (K + 1) / 2>;
  template <int K>
  using Words = hn::FixedTag<uint32_t, (K + 1) / 2>;
  template <int K>
  struct Acc {
    hn::Vec<Floats<K>> even, odd;
  };

  template <int K>
  static HWY_INLINE hn::Vec<Words<K>> odd_mask() {
    return hn::Set(Words<K>(), 0xFFFF0000u);
  }

  template <int K>
  static HWY_INLINE Acc<K> load(const uint8_t* p) {
    hn::Vec<Words<K>> pairs;
    if constexpr (K == 1) {
      Lane lane;
      std::memcpy(&lane, p, sizeof(lane));
      pairs = hn::Set(Words<K>(), lane);
    } else {
      pairs = hn::BitCast(Words<K>(), load_lanes<Lane, K>(p));
    }
    return {hn::BitCast(Floats<K>(), hn::ShiftLeft<16>(pairs)),
            hn::BitCast(Floats<K>(), hn::And(pairs, odd_mask<K>()))};
  }

  // The upper half of each word is the nearest bfloat16, ties to even; the lower half is left over.
  // NaN stays NaN.
  template <int K>
  static HWY_INLINE hn::Vec<Words<K>> round(hn::Vec<Floats<K>> v) {
    const Words<K> words;
    const auto bits = hn::BitCast(words, v);
    const auto lowest = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1u));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(words, 0x7FFFu)), lowest);
    const auto quiet = hn::Or(bits, hn::Set(words, 0x00400000u));
    return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), quiet, rounded);
  }

  template <int K, bool kStream>
  static HWY_INLINE void store(Acc<K> v, uint8_t* p) {
    const auto even = hn::ShiftRight<16>(round<K>(v.even));
    if constexpr (K == 1) {
      const auto lane = static_cast<Lane>(hn::GetLane(even));
      std::memcpy(p, &lane, sizeof(lane));
    } else {
      const auto pairs = hn::Or(even, hn::And(round<K>(v.odd), odd_mask<K>()));
      store_lanes<Lane, K, kStream>(hn::BitCast(hn::FixedTag<Lane, K>(), pairs), p);
    }
  }

  template <int K>
  static HWY_INLINE Acc<K> scale(const uint8_t* p) {
    Lane lane;
    std::memcpy(&lane, p, sizeof(lane));
    const auto all =
        hn::BitCast(Floats<K>(), hn::Set(Words<K>(), static_cast<uint32_t>(lane) << 16));
    return {all, all};
  }
  template <int K>
  static HWY_INLINE Acc<K> scaled(Acc<K> x, Acc<K> s) {
    const Floats<K> floats;
    return {hn::BitCast(floats, hn::And(round<K>(hn::Mul(x.even, s.even)), odd_mask<K>())),
            hn::BitCast(floats, hn::And(round<K>(hn::Mul(x.odd, s.odd)), odd_mask<K>()))};
  }
  template <class Op, int K>
  static HWY_INLINE Acc<K> combine(Acc<K> a, Acc<K> b) {
    return {Op::apply(a.even, b.even), Op::apply(a.odd, b.odd)};
  }
};

// Floats of 16 or 8 bits by integer arithmetic; Format says how they look (see small_float.h).
template <class Format>
struct SmallFloatCodec {
  using Lane = typename Format::Bits;
  static constexpr int kMaxLanes = HWY_LANES(float);
  static constexpr bool kIsLight = false;
  template <int K>
  using Floats = hn::FixedTag<float, K>;
  template <int K>
  using Words = hn::FixedTag<uint32_t, K>;
  template <int K>
  using Acc = hn::Vec<Floats<K>>;
  static constexpr int kShift = 23 - Format::kMantissa;
  static constexpr uint32_t kRebias = uint32_t{127 - Format::kBias} << 23;

  // a >= b for words below 2^31, which compare faster as signed numbers.
  template <class V>
  static HWY_INLINE auto at_least(V a, uint32_t b) {
    const hn::DFromV<V> words;
    const hn::RebindToSigned<hn::DFromV<V>> integers;
    return hn::RebindMask(
        words, hn::Gt(hn::BitCast(integers, a), hn::Set(integers, static_cast<int32_t>(b) - 1)));
  }

  template <int K>
  static HWY_INLINE Acc<K> widen(hn::Vec<Words<K>> bits) {
    const Words<K> words;
    const Floats<K> floats;
    const auto magnitude = hn::And(bits, hn::Set(words, Format::kMagnitude));
    const auto sign = hn::ShiftLeft<31 - Format::kSignBit>(hn::Xor(bits, magnitude));
    const auto wide = hn::ShiftLeft<kShift>(magnitude);
    const auto normal = hn::Add(wide, hn::Set(words, kRebias));
    const auto integer = hn::BitCast(hn::RebindToSigned<Words<K>>(), magnitude);
    const auto subnormal =
        hn::Mul(hn::ConvertTo(floats, integer), hn::Set(floats, Format::kSmallest));
    // All ones in the exponent; a payload stays, and the quiet bit is set where it could be lost.
    const auto special =
        hn::Or(wide, hn::Set(words, Format::kHasInfinity ? 0x7F800000u : 0x7FC00000u));
    auto result = hn::IfThenElse(at_least(magnitude, 1u << Format::kMantissa), normal,
                                 hn::BitCast(words, subnormal));
    result = hn::IfThenElse(at_least(magnitude, Format::kInfinity), special, result);
    return hn::BitCast(floats, hn::Or(result, sign));
  }

  template <int K>
  static HWY_INLINE hn::Vec<Words<K>> narrow(Acc<K> v) {
    const Words<K> words;
    const Floats<K> floats;
    const auto bits = hn::BitCast(words, v);
    const auto magnitude = hn::And(bits, hn::Set(words, 0x7FFFFFFFu));
    const auto sign = hn::ShiftLeft<Format::kSignBit>(hn::ShiftRight<31>(bits));
    const auto lowest = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(words, 1u));
    const auto bias = hn::Set(words, (1u << (kShift - 1)) - 1 - kRebias);
    const auto normal = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, bias), lowest));
    // Adding a float whose last place is the smallest subnormal rounds there, ties to even.
    const auto magic = hn::Set(floats, Format::kSmallest * 0x1p23f);
    const auto shifted = hn::Add(hn::BitCast(floats, magnitude), magic);
    const auto subnormal = hn::Sub(hn::BitCast(words, shifted), hn::BitCast(words, magic));
    auto result = hn::IfThenElse(at_least(magnitude, kRebias + (1u << 23)), normal, subnormal);
    result = hn::IfThenElse(at_least(magnitude, Format::kOverflow),
                            hn::Set(words, Format::kOverflowResult), result);
    result = hn::IfThenElse(at_least(magnitude, 0x7F800001u), hn::Set(words, Format::kNan), result);
    return hn::Or(result, sign);
  }

  template <int K>
  static HWY_INLINE Acc<K> load(const uint8_t* p) {
    return widen<K>(hn::PromoteTo(Words<K>(), load_lanes<Lane, K>(p)));
  }
  template <int K, bool kStream>
  static HWY_INLINE void store(Acc<K> v, uint8_t* p) {
    const auto bits = hn::BitCast(hn::RebindToSigned<Words<K>>(), narrow<K>(v));
    store_lanes<Lane, K, kStream>(hn::DemoteTo(hn::FixedTag<Lane, K>(), bits), p);
  }
  template <int K>
  static HWY_INLINE Acc<K> scale(const uint8_t* p) {
    Lane lane;
    std::memcpy(&lane, p, sizeof(lane));
    return widen<K>(hn::Set(Words<K>(), lane));
  }
  template <int K>
  static HWY_INLINE Acc<K> scaled(Acc<K> x, Acc<K> s) {
    return widen<K>(narrow<K>(hn::Mul(x, s)));
  }
  template <class Op, int K>
  static HWY_INLINE Acc<K> combine(Acc<K> a, Acc<K> b) {
    return Op::apply(a, b);
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
// float16 by the conversion instructions, which round to nearest even.
struct Float16Codec {
  using Lane = hwy::float16_t;
  static constexpr int kMaxLanes = HWY_LANES(float);
  static constexpr bool kIsLight = true;
  template <int K>
  using Floats = hn::FixedTag<float, K>;
  template <int K>
  using Acc = hn::Vec<Floats<K>>;

  template <int K>
  static HWY_INLINE Acc<K> load(const uint8_t* p) {
    return hn::PromoteTo(Floats<K>(), load_half<K>(p));
  }
  template <int K, bool kStream>
  static HWY_INLINE void store(Acc<K> v, uint8_t* p) {
    const auto half = hn::DemoteTo(hn::FixedTag<Lane, K>(), v);
    store_lanes<uint16_t, K, kStream>(hn::BitCast(hn::FixedTag<uint16_t, K>(), half), p);
  }
  template <int K>
  static HWY_INLINE Acc<K> scale(const uint8_t* p) {
    return hn::Set(Floats<K>(), hn::GetLane(load<1>(p)));
  }
  template <int K>
  static HWY_INLINE Acc<K> scaled(Acc<K> x, Acc<K> s) {
    return hn::PromoteTo(Floats<K>(), hn::DemoteTo(hn::FixedTag<Lane, K>(), hn::Mul(x, s)));
  }
  template <class Op, int K>
  static HWY_INLINE Acc<K> combine(Acc<K> a, Acc<K> b) {
    return Op::apply(a, b);
  }

 private:
  template <int K>
  static HWY_INLINE hn::Vec<hn::FixedTag<Lane, K>> load_half(const uint8_t* p) {
    return hn::BitCast(hn::FixedTag<Lane, K>(), load_lanes<uint16_t, K>(p));
  }
};
#else
using Float16Codec = SmallFloatCodec<Float16Format>;
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();
#endif
