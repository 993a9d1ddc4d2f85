// One pass over memory: for each group of vectors, the sources are combined in registers and stored
// once to every dst. Included once per instruction set, after hwy/foreach_target.h. The contract is
// in reduce.h, the codecs in reduce_codecs-inl.h.
//
// A range is walked in groups of a few full vectors, then full vectors, then halves of a vector
// down to one element, so that a few elements cost a few instructions and no access leaves the
// range.
#include <cstdint>

#include "device/host/copy.h"
#include "device/host/reduce.h"
#include "device/host/reduce_codecs-inl.h"
#include "sync/fence.h"

#if defined(TESSERA_REDUCE_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_REDUCE_KERNEL_INL_H
#undef TESSERA_REDUCE_KERNEL_INL_H
#else
#define TESSERA_REDUCE_KERNEL_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {

// Outputs of at least this many bytes are stored past the caches: not fetching the lines of dst
// saves more than a consumer loses.
inline constexpr size_t kStreamingBytes = size_t{1} << 20;

// kSources: their number, or 0 when only known at run time.
template <class Codec, class Op, int kSources, bool kScaled>
class Pass {
  static constexpr size_t kSize = sizeof(typename Codec::Lane);
  static constexpr int kFull = Codec::kMaxLanes;
  static constexpr int kUnroll = Codec::kIsLight ? 4 : 2;

 public:
  // Elements [begin, end). kStream: every dst is aligned to a full vector at `begin`.
  template <bool kStream>
  static HWY_INLINE void run(const ReduceArgs& args, size_t begin, size_t end) {
    size_t i = begin;
    for (; end - i >= size_t{kFull} * kUnroll; i += size_t{kFull} * kUnroll)
      group<kFull, kUnroll, kStream>(args, i);
    for (; end - i >= size_t{kFull}; i += kFull) group<kFull, 1, kStream>(args, i);
    rest<kFull / 2>(args, i, end);
  }

 private:
  template <int K>
  static HWY_INLINE void rest(const ReduceArgs& args, size_t i, size_t end) {
    if constexpr (K > 0) {
      if (end - i >= size_t{K}) {
        group<K, 1, false>(args, i);
        i += K;
      }
      rest<K / 2>(args, i, end);
    }
  }

  template <int K>
  static HWY_INLINE typename Codec::template Acc<K> load(const ReduceArgs& args, int j, size_t i) {
    const auto x = Codec::template load<K>(static_cast<const uint8_t*>(args.srcs[j]) + i * kSize);
    if constexpr (kScaled) {
      if (args.scales != nullptr && args.scales[j] != nullptr) {
        const auto s = Codec::template scale<K>(static_cast<const uint8_t*>(args.scales[j]));
        return Codec::template scaled<K>(x, s);
      }
    }
    return x;
  }

  template <int K, int kVectors, bool kStream>
  static HWY_INLINE void group(const ReduceArgs& args, size_t i) {
    typename Codec::template Acc<K> acc[kVectors];
    for (int v = 0; v < kVectors; ++v) acc[v] = load<K>(args, 0, i + size_t{K} * v);
    const int sources = kSources != 0 ? kSources : args.num_srcs;
    for (int j = 1; j < sources; ++j) {
      for (int v = 0; v < kVectors; ++v)
        acc[v] = Codec::template combine<Op, K>(acc[v], load<K>(args, j, i + size_t{K} * v));
    }
    for (int d = 0; d < args.num_dsts; ++d) {
      uint8_t* const dst = static_cast<uint8_t*>(args.dsts[d]) + i * kSize;
      for (int v = 0; v < kVectors; ++v)
        Codec::template store<K, kStream>(acc[v], dst + size_t{K} * v * kSize);
    }
  }
};

// Elements before the first one at which every dst is aligned to a full vector; count when
// streaming would not pay or not work.
template <class Codec>
size_t streaming_begin(const ReduceArgs& args) {
  constexpr size_t kSize = sizeof(typename Codec::Lane);
  constexpr size_t kVector = kSize * Codec::kMaxLanes;
  if (args.num_srcs == 1) return args.count;
  const auto first = reinterpret_cast<uintptr_t>(args.dsts[0]);
  if (first % kSize != 0) return args.count;
  for (int d = 0; d < args.num_dsts; ++d) {
    const auto dst = reinterpret_cast<uintptr_t>(args.dsts[d]);
    if ((dst - first) % kVector != 0) return args.count;
    for (int j = 0; j < args.num_srcs; ++j)
      if (args.srcs[j] == args.dsts[d]) return args.count;
  }
  return (kVector - first % kVector) % kVector / kSize;
}

template <class Codec, class Op>
HWY_NOINLINE void reduce_streaming(const ReduceArgs& args, size_t begin) {
  using Plain = Pass<Codec, Op, 0, false>;
  Plain::template run<false>(args, 0, begin);
  Plain::template run<true>(args, begin, args.count);
  store_fence();
}

// One source keeps its bits: NaNs and infinities must not pass through a conversion.
inline HWY_NOINLINE void copy_to_all(const ReduceArgs& args, size_t bytes) {
  for (int d = 0; d < args.num_dsts; ++d) copy(args.dsts[d], args.srcs[0], bytes);
}

template <class Codec, class Op>
HWY_NOINLINE void reduce_scaled(const ReduceArgs& args) {
  if (args.num_srcs == 1 && args.scales[0] == nullptr)
    return copy_to_all(args, args.count * sizeof(typename Codec::Lane));
  Pass<Codec, Op, 0, true>::template run<false>(args, 0, args.count);
}

template <class Codec, class Op>
void reduce_plain(const ReduceArgs& args) {
  if constexpr (Codec::kIsLight) {
    if (args.count * sizeof(typename Codec::Lane) >= kStreamingBytes) {
      const size_t begin = streaming_begin<Codec>(args);
      if (begin != args.count) return reduce_streaming<Codec, Op>(args, begin);
    }
    if (args.num_srcs == 2)
      return Pass<Codec, Op, 2, false>::template run<false>(args, 0, args.count);
  }
  if (args.num_srcs == 1) return copy_to_all(args, args.count * sizeof(typename Codec::Lane));
  Pass<Codec, Op, 0, false>::template run<false>(args, 0, args.count);
}

// The kernel of a floating type.
template <class Codec, class Op>
void reduce_floating(const ReduceArgs& args) {
  if (args.scales != nullptr) return reduce_scaled<Codec, Op>(args);
  reduce_plain<Codec, Op>(args);
}

template <class Codec>
ReduceFn floating_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return reduce_floating<Codec, Sum>;
    case ReduceOp::kProd:
      return reduce_floating<Codec, Prod>;
    case ReduceOp::kMax:
      return reduce_floating<Codec, Max>;
    case ReduceOp::kMin:
      return reduce_floating<Codec, Min>;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();
#endif
