#include "tuner/choose.h"

#include <algorithm>
#include <string>

namespace tessera {
namespace {

constexpr size_t KiB = 1024;

// From this block size on a copy through the kernel beats two copies through shared memory.
constexpr size_t kSingleCopyFrom = 64 * KiB;

// A forced algorithm (TESSERA_ALGO) of the wanted reach, if the collective has one of that name.
const Algorithm* forced(Collective collective, Reach reach, const Config& config) {
  if (config.algorithm.empty()) return nullptr;
  return find_algorithm(collective, config.algorithm, reach);
}

const Algorithm* staged(Collective collective, const char* name) {
  return find_algorithm(collective, name, Reach::kStaged);
}

const Algorithm* staged_default(Collective collective, int ranks) {
  if (collective == Collective::kAllReduce)
    return staged(collective, ranks <= 16 ? "two-phase" : "ring");
  if (collective == Collective::kBroadcast || collective == Collective::kReduce)
    return staged(collective, ranks <= 4 ? "one-hop" : "binomial");
  if (collective == Collective::kAllToAll)
    return staged(collective, ranks <= 16 ? "one-hop" : "pairwise");
  if (collective == Collective::kSendRecv) return staged(collective, "staged");
  if (collective == Collective::kBarrier) return staged(collective, "dissemination");
  if (ranks <= 16 || collective == Collective::kGather || collective == Collective::kScatter)
    return staged(collective, "one-hop");
  return staged(collective, "ring");
}

const Algorithm* eager_default(Collective collective, int ranks) {
  switch (collective) {
    case Collective::kAllReduce:
      return staged(collective, ranks <= 16 ? "one-hop" : "recursive-doubling");
    case Collective::kBroadcast:
    case Collective::kReduce:
      return staged(collective, ranks <= 8 ? "one-hop" : "binomial");
    case Collective::kAllGather:
      return staged(collective, ranks <= 16 ? "one-hop" : "bruck");
    case Collective::kSendRecv:
      return staged(collective, "staged");
    case Collective::kBarrier:
      return staged(collective, "dissemination");
    default:
      return staged(collective, "one-hop");
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

size_t eager_max(Collective collective, const Site& site, const Config& config) {
  if (collective == Collective::kBarrier) return 0;
  if (config.low_latency_max >= 0) return static_cast<size_t>(config.low_latency_max);
  if (collective == Collective::kSendRecv) return 8 * KiB;
  // Each rank (or the root) puts or reads ranks - 1 blocks. Where ranks share cores, meeting first
  // costs more than copying twice, most of all where data flows one way and nobody but the
  // receivers would have to wait.
  if (site.crowded && has_root(collective)) return site.ranks <= 8 ? 16 * KiB : 2 * KiB;
  const size_t most = site.crowded ? 8 * KiB : 4 * KiB;
  return std::clamp<size_t>(most * 2 / static_cast<size_t>(std::max(1, site.ranks - 1)), 512, most);
}

Result<Choice> choose_eager(Collective collective, const Site& site, const Config& config) {
  Choice choice;
  choice.algorithm = forced(collective, Reach::kStaged, config);
  if (choice.algorithm == nullptr) choice.algorithm = eager_default(collective, site.ranks);
  if (choice.algorithm == nullptr) return no_such(collective, config);
  choice.slot_bytes = std::max(eager_max(collective, site, config), size_t{64});
  // Where data flows one way, senders may run ahead by as many calls as there are copies.
  choice.depth = 2;
  if (has_root(collective)) choice.depth = site.ranks <= 4 ? 32 : site.ranks <= 8 ? 16 : 4;
  if (collective == Collective::kSendRecv) choice.depth = 4;
  return choice;
}

size_t streamed_from(Collective collective, const Site& site, size_t output_bytes, bool in_place) {
  // The second-level cache that a core has to itself on many machines.
  constexpr size_t kPrivateCache = 2048 * KiB;
  // A copy that fills the caches by itself gains by going past them. So do smaller ones where no
  // byte is read twice and the call as a whole fills them; an output that is also the input is in
  // the caches already.
  if (in_place || collective != Collective::kAllToAll) return kPrivateCache;
  const size_t touched = output_bytes * (site.crowded ? 4 : 2);
  return touched >= kPrivateCache ? 64 * KiB : kPrivateCache;
}

Result<Choice> choose_bulk(const BulkCall& call, const Site& site, const Config& config) {
  Choice choice;
  const char* direct_name =
      call.root_copies && call.collective == Collective::kBroadcast ? "direct-get" : "direct";
  const Algorithm* direct = find_algorithm(call.collective, direct_name, Reach::kDirect);
  const Algorithm* forced_staged = forced(call.collective, Reach::kStaged, config);
  const Algorithm* forced_direct = forced(call.collective, Reach::kDirect, config);
  if (forced_direct != nullptr) direct = forced_direct;
  if (direct != nullptr && call.access != Access::kNone && forced_staged == nullptr &&
      (call.access == Access::kMapped || forced_direct != nullptr ||
       call.block_bytes >= kSingleCopyFrom)) {
    choice.algorithm = direct;
    return choice;
  }
  choice.algorithm =
      forced_staged != nullptr ? forced_staged : staged_default(call.collective, site.ranks);
  if (choice.algorithm == nullptr || (forced_direct != nullptr && call.access == Access::kNone))
    return no_such(call.collective, config);
  // One pass moves a slice small enough that scratch stays in the caches.
  choice.slot_bytes =
      config.slice_bytes > 0
          ? static_cast<size_t>(config.slice_bytes)
          : std::clamp<size_t>(256 * KiB / static_cast<size_t>(site.ranks), 4 * KiB, 32 * KiB);
  choice.depth = 2;
  return choice;
}

}  // namespace tessera
