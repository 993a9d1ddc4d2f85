// What the 128 bytes of a unique id mean.
#pragma once

#include <cstdint>
#include <vector>

#include "base/keyed_hash.h"
#include "base/status.h"
#include "comm/bootstrap.h"
#include "comm/bootstrap/address.h"

namespace tessera::bootstrap {

// Version of the library. Ids, messages and the memory that ranks share belong to exactly one.
inline constexpr uint32_t kVersion = 100;  // major * 10000 + minor * 100 + patch
std::string version_text(uint32_t version);

struct IdContent {
  static constexpr size_t kMostOthers = 3;

  SocketAddress address;
  // More ways to the same root, for hosts that `address` leads nowhere from. Not link-local; their
  // port is that of `address`.
  std::vector<SocketAddress> others;
  Key secret{};
  bool hosted_by_rank_zero = false;  // rank 0 opens the root when it joins (NCCL_COMM_ID)
  int32_t creator = 0;               // pid, for messages; 0 when hosted by rank 0
};

UniqueId encode(const IdContent& content);

// kInvalidArgument: not an id; kInvalidUsage: an id of another version.
Result<IdContent> decode(const UniqueId& id);

// Fills with random bytes of the kernel.
Result<Key> random_key();

}  // namespace tessera::bootstrap
