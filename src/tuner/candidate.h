// What a call could run as: a protocol, an algorithm that it can carry, and for staged ones the
// slices: how much of a chunk one pass moves at most, which is the capacity of a slot.
//
//   low-latency   eager: a staged plan at once, without meeting; small blocks
//   staged        after meeting, in slices through shared memory
//   direct        after meeting, between user buffers that peers have mapped
//   single-copy   after meeting, between user buffers through the kernel
//   put           after meeting, into user buffers of other hosts; on a host as single-copy
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
  kPut,         // of other hosts by puts, of the own through the kernel
};

// The links between hosts as the rules and the model take them to be: TCP over a fast Ethernet.
// Microseconds and bytes per microsecond.
struct Network {
  double latency = 25;     // from the sender's memory to the receiver's, for a small message
  double message = 2;      // of a rank's time, for each message that it sends or takes in
  double bandwidth = 3e3;  // of a host, each way
};

// The links between the NUMA nodes of a host, as the model takes them to be where no description
// says more: those of a common two-socket machine. Microseconds, beyond what a hop within a node
// takes; bytes per microsecond, of a node, each way.
struct NodeLink {
  double latency = 0.15;
  double bandwidth = 20e3;
  bool operator==(const NodeLink&) const = default;
};

// What all ranks know of the place they run in.
struct Site {
  int ranks = 1;
  bool crowded = false;           // more ranks than cores: meeting costs context switches
  int cores = 1;                  // that the ranks share
  int hosts = 1;                  // of the ranks: count_hosts(host_of)
  std::vector<int> host_of = {};  // see AlgorithmParams; empty on one host
  Network network = {};
  std::vector<int> order = {};    // see AlgorithmParams; empty: as numbered
  std::vector<int> node_of = {};  // by rank: equal on one NUMA node; empty: one on each host
  NodeLink between_nodes = {};
};

// What an algorithm is built with at a site.
AlgorithmParams params_at(const Site& site, int root);
// A root, where the collective has one.
int some_root(Collective collective);

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

enum class Protocol : uint8_t { kLowLatency, kStaged, kDirect, kSingleCopy, kPut };
inline constexpr int kProtocols = 5;

const char* to_string(Protocol protocol);
std::optional<Protocol> protocol_named(std::string_view name);

struct Candidate {
  Protocol protocol = Protocol::kLowLatency;
  const Algorithm* algorithm = nullptr;
  size_t slot_bytes = 0;  // of a staged one; 0: by the rule of choice_of()
  bool operator==(const Candidate&) const = default;
};

// "low-latency one-hop"; "staged ring, slices of 16 KiB" where they are not the rule's
std::string describe(const Candidate& candidate);

// The same, in the slices of the rule.
Candidate by_rule(const Candidate& candidate);

// All that can run a collective at a site, in a fixed order; on several hosts what is made for them
// first.
std::vector<Candidate> candidates(Collective collective, const Site& site);

// The candidate in slices of a quarter and of four times the rule's bytes, as far as scratch has
// room. None if it is not staged, if it sends to one peer or moves no data, or if slices are forced.
std::vector<Candidate> other_slices(const Candidate& candidate, const Site& site,
                                    const Config& config);

// Largest block for which one pass suffices in the slices of `other` and in the rule's.
size_t one_pass_up_to(const Candidate& other, const Site& site, const Config& config);

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
