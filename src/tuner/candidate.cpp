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

// Slots of a staged plan unless something else is wanted.
size_t staged_slot(Collective collective, const Site& site, const Config& config) {
  if (config.slice_bytes > 0) return static_cast<size_t>(config.slice_bytes);
  const auto ranks = static_cast<size_t>(site.ranks);
  // One pass moves a slice small enough that scratch stays in the caches.
  if (site.hosts <= 1) return std::clamp<size_t>(256 * KiB / ranks, 4 * KiB, 32 * KiB);
  if (collective == Collective::kSendRecv) return 32 * KiB;
  return std::clamp<size_t>(512 * KiB / ranks, 16 * KiB, 64 * KiB);
}

// Of the 128 MiB that a communicator's plans may take: each root has a plan of its own, with slots
// for every rank.
bool fits_scratch(Collective collective, const Site& site, size_t slot_bytes) {
  constexpr size_t kMost = 8192 * KiB;  // of one copy of scratch
  const auto ranks = static_cast<size_t>(site.ranks);
  return slot_bytes * ranks * (has_root(collective) ? ranks : 1) <= kMost;
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
  std::string text = fmt::format("{} {}", to_string(candidate.protocol), candidate.algorithm->name);
  const size_t slice = candidate.slot_bytes;
  if (slice == 0) return text;
  return text + (slice % KiB == 0 ? fmt::format(", slices of {} KiB", slice / KiB)
                                  : fmt::format(", slices of {} bytes", slice));
}

Candidate by_rule(const Candidate& candidate) { return {candidate.protocol, candidate.algorithm}; }

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

AlgorithmParams params_at(const Site& site, int root) {
  AlgorithmParams params;
  params.ranks = site.ranks;
  params.root = root;
  params.host_of = site.host_of;
  params.order = site.order;
  return params;
}

int some_root(Collective collective) { return has_root(collective) ? 0 : -1; }

std::vector<Candidate> other_slices(const Candidate& candidate, const Site& site,
                                    const Config& config) {
  constexpr size_t kLeast = 2 * KiB;  // below, steps cost more than what they move
  const Collective collective = candidate.algorithm->collective;
  if (candidate.protocol != Protocol::kStaged || config.slice_bytes > 0 ||
      collective == Collective::kSendRecv || collective == Collective::kBarrier)
    return {};
  std::vector<Candidate> others;
  const size_t rule = staged_slot(collective, site, config);
  for (const size_t slot : {rule / 4, rule * 4}) {
    if (slot >= kLeast && fits_scratch(collective, site, slot))
      others.push_back({candidate.protocol, candidate.algorithm, slot});
  }
  return others;
}

size_t one_pass_up_to(const Candidate& other, const Site& site, const Config& config) {
  const AlgorithmParams params = params_at(site, some_root(other.algorithm->collective));
  const int chunks = other.algorithm->build(params).chunks_per_block;
  return std::min(other.slot_bytes, staged_slot(other.algorithm->collective, site, config)) *
         static_cast<size_t>(chunks);
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
    const bool own = candidate.slot_bytes > 0 && config.slice_bytes <= 0;
    choice.slot_bytes =
        own ? candidate.slot_bytes : staged_slot(candidate.algorithm->collective, site, config);
  }
  return choice;
}

}  // namespace tessera
