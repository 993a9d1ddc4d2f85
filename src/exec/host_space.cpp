#include "exec/host_space.h"

#include <algorithm>

#include "device/host/copy.h"

namespace tessera {
namespace {

// Remote operands are brought here in blocks that stay in the core's second-level cache.
constexpr size_t kBlockBytes = 32 * 1024;

}  // namespace

HostSpace::HostSpace(uint32_t max_operands) { reserve(max_operands); }

void HostSpace::reserve(uint32_t max_operands) {
  if (places_.size() >= max_operands) return;
  places_.resize(max_operands);
  raw_.resize(max_operands);
  members_.resize(max_operands);
  srcs_.resize(max_operands);
  dsts_.resize(max_operands);
  scales_.resize(max_operands);
}

void HostSpace::post(uint16_t member, const void* counter, PortSignal::Kind kind, uint64_t value,
                     uint64_t fingerprint) {
  const MemberWay& way = ways_[member];
  const auto position = static_cast<uint64_t>(static_cast<const std::byte*>(counter) - way.base);
  way.port->signal({position, value, fingerprint, kind});
}

void HostSpace::put(uint16_t member, const void* data, Place dst, size_t bytes) {
  const MemberWay& way = ways_[member];
  const auto* from = static_cast<const std::byte*>(data);
  if (dst.pid == host::kBehindPort) {
    // A user's input does not change before the run is over, and that is when all has left: it is
    // its own shadow, and is not written.
    way.port->put(dst.address, from, const_cast<std::byte*>(from), bytes);
    return;
  }
  auto* shadow = static_cast<std::byte*>(dst.pointer());
  way.port->put(static_cast<uint64_t>(shadow - way.base), from, shadow, bytes);
}

bool HostSpace::combine(const Operands<Place>& operands) {
  if (reduction_.kernel != nullptr &&
      (operands.reduce || (operands.completes && reduction_.divisor > 1) || scaled(operands))) {
    return reduce(operands);
  }
  return copy(operands);
}

bool HostSpace::scaled(const Operands<Place>& operands) const {
  if (reduction_.scales == nullptr) return false;
  for (uint32_t i = 0; i < operands.num_srcs; ++i) {
    if (operands.raw[i] != 0) return true;
  }
  return false;
}

bool HostSpace::move(Place dst, Place src, size_t bytes) {
  error_ = host::move(dst, src, bytes);
  if (error_ == 0) return true;
  error_pid_ = dst.local() ? src.pid : dst.pid;
  return false;
}

bool HostSpace::copy(const Operands<Place>& operands) {
  const size_t bytes = operands.elements * element_bytes_;
  const Place src = operands.srcs[0];
  int local = 0;
  for (uint32_t i = 0; i < operands.num_dsts; ++i) {
    const Place dst = operands.dsts[i];
    if (dst.pid == src.pid && dst.address == src.address) continue;
    if (has_port(operands.members[i])) {
      put(operands.members[i], src.pointer(), dst, bytes);
    } else if (dst.local() && src.local()) {
      dsts_[local++] = dst.pointer();
    } else if (!move(dst, src, bytes)) {
      return false;
    }
  }
  if (local > 0)
    host::copy_to_all(dsts_.data(), local, src.pointer(), bytes, bytes >= streamed_from_);
  return true;
}

bool HostSpace::reduce(const Operands<Place>& operands) {
  bool local = true;
  for (uint32_t i = 0; i < operands.num_srcs; ++i) {
    local = local && operands.srcs[i].local();
    srcs_[i] = operands.srcs[i].pointer();
    const bool scale = reduction_.scales != nullptr && operands.raw[i] != 0;
    scales_[i] = scale ? reduction_.scales[operands.raw[i] - 1] : nullptr;
  }
  for (uint32_t i = 0; i < operands.num_dsts; ++i) {
    local = local && operands.dsts[i].local();
    dsts_[i] = operands.dsts[i].pointer();
  }
  if (!local) return reduce_remote(operands);  // never with ports: they go with staged plans
  reduction_.kernel({dsts_.data(), static_cast<int>(operands.num_dsts), srcs_.data(),
                     static_cast<int>(operands.num_srcs),
                     reduction_.scales != nullptr ? scales_.data() : nullptr, operands.elements,
                     operands.completes ? reduction_.divisor : 1});
  for (uint32_t i = 0; ported_ && i < operands.num_dsts; ++i) {
    if (has_port(operands.members[i]))
      put(operands.members[i], dsts_[i], operands.dsts[i], operands.elements * element_bytes_);
  }
  return true;
}

// Block by block: fetch what lies elsewhere, combine, deliver what belongs elsewhere.
bool HostSpace::reduce_remote(const Operands<Place>& operands) {
  const uint32_t total = operands.num_dsts + operands.num_srcs;
  bounce_.resize(std::max(bounce_.size(), size_t{total} * kBlockBytes));
  const size_t block_elements = kBlockBytes / element_bytes_;
  for (size_t done = 0; done < operands.elements; done += block_elements) {
    const size_t elements = std::min(block_elements, operands.elements - done);
    const size_t bytes = elements * element_bytes_, offset = done * element_bytes_;
    std::byte* bounce = bounce_.data();
    for (uint32_t i = 0; i < operands.num_srcs; ++i, bounce += kBlockBytes) {
      const Place src = operands.srcs[i] + offset;
      srcs_[i] = src.local() ? src.pointer() : bounce;
      if (!src.local() && !move(place(bounce), src, bytes)) return false;
    }
    const bool any_local = std::any_of(operands.dsts, operands.dsts + operands.num_dsts,
                                       [](const Place& dst) { return dst.local(); });
    int kernel_dsts = 0;
    const void* result = nullptr;
    for (uint32_t i = 0; i < operands.num_dsts; ++i) {
      if (operands.dsts[i].local()) dsts_[kernel_dsts++] = (operands.dsts[i] + offset).pointer();
    }
    if (!any_local) dsts_[kernel_dsts++] = bounce;
    result = dsts_[0];
    reduction_.kernel({dsts_.data(), kernel_dsts, srcs_.data(), static_cast<int>(operands.num_srcs),
                       reduction_.scales != nullptr ? scales_.data() : nullptr, elements,
                       operands.completes ? reduction_.divisor : 1});
    for (uint32_t i = 0; i < operands.num_dsts; ++i) {
      const Place dst = operands.dsts[i] + offset;
      const Place from{reinterpret_cast<uintptr_t>(result), 0};
      if (!dst.local() && !move(dst, from, bytes)) return false;
    }
  }
  return true;
}

}  // namespace tessera
