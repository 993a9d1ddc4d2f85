#include "tuner/candidate.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera {
namespace {

constexpr size_t KiB = 1024;
constexpr const char* kNames[kProtocols] = {"low-latency", "staged", "direct", "single-copy",
                                            "put"};

int depth_of(Collective collective, const Site& site) {
  // Where data flows one way, senders may run ahead by as many calls as there are copies.
  if (has_root(collective)) return site.ranks <= 4 ? 32 : site.ranks <= 8 ? 16 : 4;
  return collective == Collective::kSendRecv ? 4 : 2;
}

}  // namespace

const char* to_string(Protocol protocol) { return kNames[static_cast<int>(protocol)]; }

std::optional<Protocol> protocol_named(std::string_view name) {
  for (int i = 0; i < kProtocols; ++i) {
    if (name == kNames[i]) return static_cast<Protocol>(i);
  }
  return std::nullopt;
}

std::string describe(const Candidate& candidate) {
  return fmt::format("{} {}", to_string(candidate.protocol), candidate.algorithm->name);
}

std::vector<Candidate> candidates(Collective collective, const Site& site) {
  std::vector<Candidate> all;
  for (const Algorithm& algorithm : algorithms(collective)) {
    if (!algorithm.supports(site.ranks, site.hosts)) continue;
    if (algorithm.reach == Reach::kStaged) {
      if (collective != Collective::kBarrier) all.push_back({Protocol::kLowLatency, &algorithm});
      all.push_back({Protocol::kStaged, &algorithm});
    } else if (algorithm.puts) {
      if (site.hosts > 1) all.push_back({Protocol::kPut, &algorithm});
    } else {
      all.push_back({Protocol::kDirect, &algorithm});
      all.push_back({Protocol::kSingleCopy, &algorithm});
    }
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const Candidate& c) { return c.algorithm->across_hosts; });
  return all;
}

size_t low_latency_cap(Collective collective, const Site& site) {
  constexpr size_t kRegionBytes = 2048 * KiB;
  const auto slots = static_cast<size_t>(std::max(1, site.ranks - 1));
  const size_t bytes = kRegionBytes / slots / static_cast<size_t>(depth_of(collective, site));
  return std::clamp<size_t>(bytes, 512, 64 * KiB);
}

bool reaches(const Candidate& candidate, Access access) {
  switch (candidate.protocol) {
    case Protocol::kDirect:
      return access == Access::kMapped;
    case Protocol::kSingleCopy:
      return access == Access::kSingleCopy;
    case Protocol::kPut:
      return access == Access::kPut;
    default:
      return true;
  }
}

size_t block_of(Collective collective, int ranks, size_t message) {
  const bool shared_out = collective == Collective::kAllGather ||
                          collective == Collective::kReduceScatter ||
                          collective == Collective::kAllToAll ||
                          collective == Collective::kGather || collective == Collective::kScatter;
  const size_t block = shared_out ? message / static_cast<size_t>(ranks) : message;
  return block / sizeof(float) * sizeof(float);
}

Choice choice_of(const Candidate& candidate, const Site& site, const Config& config,
                 size_t largest) {
  Choice choice;
  choice.algorithm = candidate.algorithm;
  if (candidate.protocol == Protocol::kLowLatency) {
    choice.depth = depth_of(candidate.algorithm->collective, site);
    choice.slot_bytes =
        std::clamp<size_t>(largest, 64, low_latency_cap(candidate.algorithm->collective, site));
  } else if (candidate.protocol == Protocol::kStaged) {
    // Between hosts enough slices are under way to fill the link while it delivers the first.
    choice.depth = site.hosts > 1 ? 4 : 2;
    if (config.slice_bytes > 0) {
      choice.slot_bytes = static_cast<size_t>(config.slice_bytes);
    } else if (site.hosts > 1) {
      choice.slot_bytes =
          candidate.algorithm->collective == Collective::kSendRecv
              ? 32 * KiB
              : std::clamp<size_t>(512 * KiB / static_cast<size_t>(site.ranks), 16 * KiB, 64 * KiB);
    } else {
      // One pass moves a slice small enough that scratch stays in the caches.
      choice.slot_bytes =
          std::clamp<size_t>(256 * KiB / static_cast<size_t>(site.ranks), 4 * KiB, 32 * KiB);
    }
  }
  return choice;
}

}  // namespace tessera
