#include "device/host/copy.h"

#include "device/host/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/host/copy.cpp"
#include "hwy/foreach_target.h"
//
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "sync/fence.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::host {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At least one vector.
void stream(uint8_t* dst, const uint8_t* src, size_t bytes) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(dst, src, bytes);  // no streaming stores here
#else
  const hn::ScalableTag<uint8_t> d;
  const size_t vector = hn::Lanes(d);
  const size_t head = (vector - reinterpret_cast<uintptr_t>(dst) % vector) % vector;
  std::memcpy(dst, src, head);
  size_t i = head;
  for (; bytes - i >= 4 * vector; i += 4 * vector) {
    const auto v0 = hn::LoadU(d, src + i);
    const auto v1 = hn::LoadU(d, src + i + vector);
    const auto v2 = hn::LoadU(d, src + i + 2 * vector);
    const auto v3 = hn::LoadU(d, src + i + 3 * vector);
    hn::Stream(v0, d, dst + i);
    hn::Stream(v1, d, dst + i + vector);
    hn::Stream(v2, d, dst + i + 2 * vector);
    hn::Stream(v3, d, dst + i + 3 * vector);
  }
  std::memcpy(dst + i, src + i, bytes - i);
  store_fence();
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::host {

namespace {

// Copies to several places go block by block, so that the source is fetched from memory once.
constexpr size_t kBlockBytes = 128 * 1024;

// Less than this is not worth a fence.
constexpr size_t kLeastStreamed = 4096;

}  // namespace

HWY_EXPORT(stream);

void copy(void* dst, const void* src, size_t bytes) {
  if (dst != src && bytes != 0) std::memcpy(dst, src, bytes);
}

void copy_past_caches(void* dst, const void* src, size_t bytes) {
  if (bytes < kLeastStreamed) return copy(dst, src, bytes);
  if (dst == src) return;
  HWY_DYNAMIC_DISPATCH(stream)
  (static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), bytes);
}

void copy_to_all(void* const* dsts, int num_dsts, const void* src, size_t bytes, bool past_caches) {
  const size_t block_bytes = num_dsts == 1 ? bytes : kBlockBytes;
  const auto* from = static_cast<const uint8_t*>(src);
  for (size_t done = 0; done < bytes; done += block_bytes) {
    const size_t block = bytes - done < block_bytes ? bytes - done : block_bytes;
    for (int i = 0; i < num_dsts; ++i) {
      auto* to = static_cast<uint8_t*>(dsts[i]) + done;
      if (past_caches)
        copy_past_caches(to, from + done, block);
      else
        copy(to, from + done, block);
    }
  }
}

}  // namespace tessera::host
#endif
