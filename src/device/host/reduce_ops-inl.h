// The combining operations on vectors. Included once per instruction set; see reduce_kernel-inl.h.
#include "hwy/highway.h"

#if defined(TESSERA_REDUCE_OPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_REDUCE_OPS_INL_H
#undef TESSERA_REDUCE_OPS_INL_H
#else
#define TESSERA_REDUCE_OPS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway has no product of bytes, and none of a single 64-bit lane.
template <class V>
HWY_INLINE V multiply(V a, V b) {
  using D = hn::DFromV<V>;
  using T = hn::TFromD<D>;
  constexpr size_t kLanes = hn::MaxLanes(D());
  if constexpr (!hwy::IsFloat<T>() && kLanes == 1) {
    return hn::Set(D(), static_cast<T>(hn::GetLane(a) * hn::GetLane(b)));
  } else if constexpr (sizeof(T) == 1) {
    const hn::Repartition<uint16_t, D> wide;
    const auto a16 = hn::BitCast(wide, a);
    const auto b16 = hn::BitCast(wide, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(wide, 0x00FF));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
    return hn::BitCast(D(), hn::Or(even, odd));
  } else {
    return hn::Mul(a, b);
  }
}

struct Sum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Prod {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return multiply(a, b);
  }
};
struct Max {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Max(a, b);
  }
};
struct Min {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Min(a, b);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();
#endif
