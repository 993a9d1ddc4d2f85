#include "tuner/choose.h"

#include <algorithm>
#include <string>

namespace tessera {
namespace {

constexpr size_t KiB = 1024;

// A forced algorithm (TESSERA_ALGO) of the wanted reach, if the collective has one of that name.
const Algorithm* forced(Collective collective, Reach reach, const Config& config) {
  if (config.algorithm.empty()) return nullptr;
  return find_algorithm(collective, config.algorithm, reach);
}

const Algorithm* staged_default(Collective collective, int ranks, size_t block_bytes) {
  (void)block_bytes;
  const auto get = [&](const char* name) { return find_algorithm(collective, name, Reach::kStaged); };
  if (collective == Collective::kAllReduce) return get(ranks <= 16 ? "two-phase" : "ring");
  if (collective == Collective::kBroadcast || collective == Collective::kReduce)
    return get(ranks <= 4 ? "one-hop" : "binomial");
  if (collective == Collective::kAllToAll) return get(ranks <= 16 ? "one-hop" : "pairwise");
  if (collective == Collective::kSendRecv) return get("staged");
  if (collective == Collective::kBarrier) return get("dissemination");
  if (ranks <= 16 || collective == Collective::kGather || collective == Collective::kScatter)
    return get("one-hop");
  return get("ring");
}

const Algorithm* eager_default(Collective collective, int ranks) {
  const auto get = [&](const char* name) { return find_algorithm(collective, name, Reach::kStaged); };
  switch (collective) {
    case Collective::kAllReduce: return get(ranks <= 16 ? "one-hop" : "recursive-doubling");
    case Collective::kBroadcast:
    case Collective::kReduce: return get(ranks <= 8 ? "one-hop" : "binomial");
    case Collective::kAllGather: return get(ranks <= 16 ? "one-hop" : "bruck");
    case Collective::kSendRecv: return get("staged");
    case Collective::kBarrier: return get("dissemination");
    default: return get("one-hop");
  }
}

Status no_such(Collective collective, const Config& config) {
  std::string names;
  for (const Algorithm& algorithm : algorithms(collective)) {
    if (!names.empty()) names += ", ";
    names += algorithm.name;
  }
  return Status::error(Code::kInvalidUsage,
                       "TESSERA_ALGO={}: {} has no such algorithm that can run here; it has: {}",
                       config.algorithm, to_string(collective), names);
}

}  // namespace

size_t eager_max(Collective collective, int ranks, const Config& config) {
  if (collective == Collective::kBarrier) return 0;
  if (config.low_latency_max >= 0) return static_cast<size_t>(config.low_latency_max);
  if (collective == Collective::kSendRecv) return 8 * KiB;
  // Each rank puts or reads ranks - 1 blocks.
  return std::clamp<size_t>(8 * KiB / std::max(1, ranks - 1), 512, 4 * KiB);
}

Result<Choice> choose_eager(Collective collective, int ranks, size_t block_bytes,
                            const Config& config) {
  Choice choice;
  choice.algorithm = forced(collective, Reach::kStaged, config);
  if (choice.algorithm == nullptr) choice.algorithm = eager_default(collective, ranks);
  if (choice.algorithm == nullptr) return no_such(collective, config);
  choice.slot_bytes = std::max(eager_max(collective, ranks, config), size_t{64});
  choice.depth = has_root(collective) || collective == Collective::kSendRecv ? 4 : 2;
  (void)block_bytes;
  return choice;
}

Result<Choice> choose_bulk(Collective collective, int ranks, size_t block_bytes, Access access,
                           const Config& config) {
  Choice choice;
  const Algorithm* direct = find_algorithm(collective, "direct", Reach::kDirect);
  const Algorithm* forced_staged = forced(collective, Reach::kStaged, config);
  const bool force_direct = config.algorithm == "direct";
  const size_t single_copy_from = 64 * KiB;
  if (direct != nullptr && access != Access::kNone && forced_staged == nullptr &&
      (access == Access::kMapped || force_direct || block_bytes >= single_copy_from)) {
    choice.algorithm = direct;
    return choice;
  }
  choice.algorithm =
      forced_staged != nullptr ? forced_staged : staged_default(collective, ranks, block_bytes);
  if (choice.algorithm == nullptr || (force_direct && access == Access::kNone))
    return no_such(collective, config);
  // One pass moves a slice small enough that scratch stays in the caches.
  choice.slot_bytes = config.slice_bytes > 0
                          ? static_cast<size_t>(config.slice_bytes)
                          : std::clamp<size_t>(256 * KiB / std::max(ranks, 1), 4 * KiB, 32 * KiB);
  choice.depth = 2;
  return choice;
}

}  // namespace tessera
