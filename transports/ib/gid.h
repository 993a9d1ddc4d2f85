// Addresses of RDMA ports, and which of a port's addresses to use.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::ib {

using Gid = std::array<uint8_t, 16>;

enum class GidType : uint8_t { kInfiniBand, kRoceV1, kRoceV2 };

struct GidEntry {
  int index = -1;
  Gid gid{};
  GidType type = GidType::kInfiniBand;
};

// The index of the best entry for an Ethernet port: RoCE v2 before v1, IPv4 before global IPv6
// before link-local, lower indices first; -1 if none is usable (all zero).
int best_gid(std::span<const GidEntry> entries);

// "10.0.0.1" for an IPv4-mapped address, else as IPv6.
std::string to_text(const Gid& gid);

// What the kernel calls the type of a GID: "IB/RoCE v1", "RoCE v2".
GidType gid_type(const std::string& text);

}  // namespace tessera::ib
