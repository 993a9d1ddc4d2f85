// What a call could run as: a protocol and an algorithm that it can carry.
//
//   low-latency   eager: a staged plan at once, without meeting; small blocks
//   staged        after meeting, in slices through shared memory
//   direct        after meeting, between user buffers that peers have mapped
//   single-copy   after meeting, between user buffers through the kernel
//
// Thread safety: pure functions and plain data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/config.h"
#include "base/status.h"

namespace tessera {

// How user buffers of all ranks can be reached.
enum class Access : uint8_t {
  kNone,        // only by their owner
  kSingleCopy,  // through the kernel
  kMapped,      // load and store
};

// What all ranks know of the place they run in.
struct Site {
  int ranks = 1;
  bool crowded = false;  // more ranks than cores: meeting costs context switches
  int cores = 1;         // that the ranks share
};

// A bulk call, as all ranks know it once they have announced their buffers.
struct BulkCall {
  Collective collective = Collective::kBarrier;
  size_t block_bytes = 0;
  Access access = Access::kNone;
  bool root_copies = false;  // the root is not in place: it has a copy of its own to make
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  // capacity of a scratch slot, which bounds a slice's chunks; 0 for direct plans: one pass moves
  // all
  size_t slot_bytes = 0;
  int depth = 2;  // copies of scratch
};

enum class Protocol : uint8_t { kLowLatency, kStaged, kDirect, kSingleCopy };
inline constexpr int kProtocols = 4;

const char* to_string(Protocol protocol);
std::optional<Protocol> protocol_named(std::string_view name);

struct Candidate {
  Protocol protocol = Protocol::kLowLatency;
  const Algorithm* algorithm = nullptr;
  bool operator==(const Candidate&) const = default;
};

std::string describe(const Candidate& candidate);  // "low-latency one-hop"

// All that can run a collective at a site, in a fixed order.
std::vector<Candidate> candidates(Collective collective, const Site& site);

// Largest block that a low-latency plan may carry: its slots, of which there are `depth` copies for
// each peer, are resident memory.
size_t low_latency_cap(Collective collective, const Site& site);

// Whether a candidate can carry a call whose buffers can be reached so.
bool reaches(const Candidate& candidate, Access access);

// Bytes of a block of a call of `message` bytes as the perf tests count them (all blocks of the
// larger buffer), rounded down to whole float32; 0 where nothing is left.
size_t block_of(Collective collective, int ranks, size_t message);

// How the candidate is linked. `largest`: bytes of the largest block that will run so.
Choice choice_of(const Candidate& candidate, const Site& site, const Config& config,
                 size_t largest);

}  // namespace tessera
