#include "tools/common/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/candidate.h"

namespace tessera::tools {

size_t message_bytes(Collective collective, int ranks, size_t block_bytes) {
  switch (collective) {
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return block_bytes * static_cast<size_t>(ranks);
    default:
      return block_bytes;
  }
}

size_t block_bytes(Collective collective, int ranks, size_t asked) {
  if (collective == Collective::kBarrier || asked == 0) return 0;
  return std::max(block_of(collective, ranks, asked), sizeof(float));
}

std::string rounding_note(Collective collective, int ranks, size_t asked, size_t block_bytes) {
  const size_t whole = message_bytes(collective, ranks, block_bytes);
  if (collective == Collective::kBarrier || whole == asked) return {};
  return fmt::format("note: blocks are whole float32 elements, so {} bytes are computed, not {}\n",
                     whole, asked);
}

}  // namespace tessera::tools
