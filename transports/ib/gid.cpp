#include "transports/ib/gid.h"

#include <arpa/inet.h>

#include <algorithm>

namespace tessera::ib {
namespace {

bool is_ipv4(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](uint8_t byte) { return byte == 0; }) &&
         gid[10] == 0xff && gid[11] == 0xff;
}

bool is_link_local(const Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

// Larger is better; 0: of no use.
int rank_of(const GidEntry& entry) {
  if (entry.gid == Gid{}) return 0;
  const int address = is_ipv4(entry.gid) ? 3 : is_link_local(entry.gid) ? 1 : 2;
  return address + (entry.type == GidType::kRoceV2 ? 3 : 0);
}

}  // namespace

int best_gid(std::span<const GidEntry> entries) {
  int best = -1, best_rank = 0;
  for (const GidEntry& entry : entries) {
    if (rank_of(entry) <= best_rank) continue;
    best = entry.index;
    best_rank = rank_of(entry);
  }
  return best;
}

std::string to_text(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_ipv4(gid))
    ::inet_ntop(AF_INET, gid.data() + 12, text, sizeof text);
  else
    ::inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  return text;
}

GidType gid_type(const std::string& text) {
  return text.starts_with("RoCE v2") ? GidType::kRoceV2 : GidType::kRoceV1;
}

}  // namespace tessera::ib
