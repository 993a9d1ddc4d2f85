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

// From these sizes on a ring or chain of more than two hosts, which keeps all links busy, beats
// exchanges and trees. With many hosts, fewer peers count for more than fewer hops.
constexpr size_t kRingFrom = 1024 * KiB, kChainFrom = 256 * KiB;
constexpr int kManyHosts = 9;

// Across hosts every byte over the network counts, thus plans made for them; but a bulk message in
// which each pair of ranks has its own blocks gains nothing from a detour.
const Algorithm* staged_across(Collective collective, size_t block_bytes, const Site& site) {
  switch (collective) {
    case Collective::kAllReduce:
      if (site.hosts > 2 && block_bytes >= kRingFrom)
        return staged(collective, "hierarchical-ring");
      return staged(collective, site.hosts < kManyHosts ? "hierarchical" : "hierarchical-tree");
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return staged(collective, site.hosts < kManyHosts ? "hierarchical" : "hierarchical-ring");
    case Collective::kBroadcast:
    case Collective::kReduce:
      return staged(collective, site.hosts > 2 && block_bytes >= kChainFrom ? "hierarchical-ring"
                                                                            : "hierarchical-tree");
    case Collective::kBarrier:
      return staged(collective, "hierarchical");
    default:
      return staged_default(collective, site.ranks);
  }
}

// Small messages cost by their number.
const Algorithm* eager_across(Collective collective, const Site& site) {
  if (collective == Collective::kSendRecv) return staged(collective, "staged");
  if (collective == Collective::kBarrier) return staged(collective, "hierarchical");
  // Leaders of pairs handle each block twice to save half of the messages.
  if (collective == Collective::kAllToAll && site.ranks <= 2 * site.hosts)
    return staged(collective, "one-hop");
  return staged(collective, "hierarchical-hop");
}

// Meeting costs two ways over the network, in which a link moves some 150 KB.
size_t eager_max_across(Collective collective, const Site& site) {
  const bool shared_out = collective == Collective::kAllGather ||
                          collective == Collective::kReduceScatter ||
                          collective == Collective::kAllToAll ||
                          collective == Collective::kGather || collective == Collective::kScatter;
  const int carried =
      shared_out ? std::max(1, site.ranks - site.ranks / site.hosts) : std::max(1, site.hosts - 1);
  const size_t fair = 64 * KiB / static_cast<size_t>(carried);
  return std::min(std::clamp<size_t>(fair, 2 * KiB, 64 * KiB), low_latency_cap(collective, site));
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
  if (site.hosts > 1) return eager_max_across(collective, site);
  // Each rank (or the root) puts or reads ranks - 1 blocks. Where ranks share cores, meeting first
  // costs more than copying twice, most of all where data flows one way and nobody but the
  // receivers would have to wait.
  if (site.crowded && has_root(collective)) return site.ranks <= 8 ? 16 * KiB : 2 * KiB;
  const size_t most = site.crowded ? 8 * KiB : 4 * KiB;
  return std::clamp<size_t>(most * 2 / static_cast<size_t>(std::max(1, site.ranks - 1)), 512, most);
}

Candidate eager_default(Collective collective, const Site& site) {
  return {Protocol::kLowLatency, site.hosts > 1 ? eager_across(collective, site)
                                                : eager_algorithm(collective, site.ranks)};
}

namespace {

// Straight into the outputs where no byte would cross the network twice for it.
const Algorithm* put_across(const BulkCall& call, const Site& site) {
  constexpr size_t kPutFrom = 16 * KiB;
  if (call.access != Access::kPut || call.block_bytes < kPutFrom) return nullptr;
  const bool one_each = site.hosts == site.ranks;
  if (call.collective == Collective::kAllGather && !one_each) return nullptr;
  if (call.collective == Collective::kBroadcast && site.ranks > 2) return nullptr;
  return find_algorithm(call.collective, "put", Reach::kDirect);
}

}  // namespace

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
  if (const Algorithm* put = put_across(call, site)) return {Protocol::kPut, put};
  return {Protocol::kStaged, site.hosts > 1 ? staged_across(call.collective, call.block_bytes, site)
                                            : staged_default(call.collective, site.ranks)};
}

}  // namespace tessera
