#include "tuner/rules.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr size_t KiB = 1024;

// From this block size on a copy through the kernel beats two copies through shared memory.
constexpr size_t kSingleCopyFrom = 64 * KiB;

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

const Algorithm* eager_algorithm(Collective collective, int ranks) {
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

Candidate eager_default(Collective collective, const Site& site) {
  return {Protocol::kLowLatency, eager_algorithm(collective, site.ranks)};
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

Candidate bulk_default(const BulkCall& call, const Site& site) {
  const char* name =
      call.root_copies && call.collective == Collective::kBroadcast ? "direct-get" : "direct";
  const Algorithm* direct = find_algorithm(call.collective, name, Reach::kDirect);
  if (direct != nullptr && call.access == Access::kMapped) return {Protocol::kDirect, direct};
  if (direct != nullptr && call.access == Access::kSingleCopy &&
      call.block_bytes >= kSingleCopyFrom)
    return {Protocol::kSingleCopy, direct};
  return {Protocol::kStaged, staged_default(call.collective, site.ranks)};
}

}  // namespace tessera
