// The plan: the complete schedule of one collective for all ranks, independent of addresses and
// sizes.
//
// Shape of the data
//   The collective's shape (plan/shape.h) says how many blocks the input and the output of each
//   rank have; a block is `count` elements of the user's call. Every block is cut into
//   `chunks_per_block` chunks (C). Chunk i of a buffer is chunk i % C of block i / C; chunk c of a
//   block has the same length in every block (ragged: lengths differ by c, and may be 0). Scratch
//   is `scratch_chunks` slots per rank, each able to hold any chunk, and exists `scratch_depth`
//   times: pass p of the plan uses copy p % scratch_depth.
//
// Passes
//   A long message is sent in slices, one pass of the plan for each; the next call of the
//   collective goes on with the next pass. Passes are numbered from 0 over the life of a linked
//   plan. Lanes of one rank, and ranks, may be in different passes at one time.
//
// Counters (I3: they only grow)
//   A counter is owned by the rank that waits on it. Step counters are raised by signals; each has
//   exactly one signalling lane, unless the plan makes sure that no signal of a later pass can come
//   before a wait of this pass (the verifier proves it). External counters are raised by somebody
//   outside of the plan, `arrivals` times per pass (tiles of a compute kernel). A wait in pass p
//   with increment k and lag g is for the value that the counter has once it got k of pass p - g:
//       value >= per_pass * (p - g) + k, where per_pass is the sum of all signals to it in one
//       pass; satisfied if p < g.
//
// Access
//   Inputs are never written. Within a step all sources are read before, or chunk by chunk along
//   with, the writes: a source may be the same run as a destination, but may not overlap one
//   otherwise. A copy of a chunk onto itself (in place, say) moves nothing. Caps: plan/limits.h.
//
// Accumulation, in any order
//   The kAccumulate steps of one tally add their sources to one slot, as they come. The tally is a
//   step counter of their rank; the first signal of each raises it by 1, and nothing else does.
//   Who finds it where the pass began stores its source in the slot, the others add theirs. The sum
//   is there once the tally has got all of the pass; who reads it waits for that.
//   Steps of one tally exclude each other, from reading the tally to raising it. All are of one
//   rank, and a host runs the steps of a rank one at a time.
//   A sum must lack a contribution: which step would complete it is open, so that a step after it
//   adds the last one (and applies the post-operation).
//
// Pre- and post-operation
//   In a collective that reduces, the input holds raw contributions. A step that reads the input
//   applies the reduction's pre-operation (PreMulSum, float Avg) of that input's rank; the step
//   that completes a chunk (all contributions present for the first time, `completes`) applies the
//   post-operation (integer Avg).
//
// Thread safety: plain data. Source: DESIGN's plan; vocabulary of docs/architecture.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace tessera {

enum class Buffer : uint8_t { kInput, kOutput, kScratch };

// A run of chunks in a buffer of a rank. The number of chunks is the step's.
struct Ref {
  int rank = 0;
  Buffer buffer = Buffer::kInput;
  int chunk = 0;
  bool operator==(const Ref&) const = default;
};

struct Wait {
  int counter = 0;  // of the waiting rank
  uint32_t increment = 1;
  uint32_t lag = 0;  // passes; > 0 for credits: "the reader of the copy I overwrite has finished"
  bool operator==(const Wait&) const = default;
};

struct Signal {
  int rank = 0;  // the counter's owner
  int counter = 0;
  uint32_t increment = 1;
  bool operator==(const Signal&) const = default;
};

enum class Op : uint8_t {
  kCopy,        // every dst := the one src
  kReduce,      // every dst := srcs combined in the order given (src may equal dst)
  kSync,        // no data: waits and signals only
  kAccumulate,  // dst (a slot of the own rank) := src, or dst combined with it; see above
};

// The smallest scheduled action: wait for all waits, move the data, then raise all signals.
// How people call it follows from who owns the operands: copy (all local), put (local to a peer),
// get (from a peer), and reduce, put-reduce, get-reduce likewise, accumulate; sync is called wait,
// signal or sync (step_name()).
struct Step {
  Op op = Op::kSync;
  int chunk = 0;   // which chunk of a block the first data chunk is (0 .. C-1): gives the length
  int chunks = 1;  // run of consecutive chunks; the j-th has the length of chunk (chunk + j) % C
  std::vector<Ref> dsts;
  std::vector<Ref> srcs;
  std::vector<Wait> waits;
  std::vector<Signal> signals;
  bool completes = false;  // set by verify(); not part of the JSON form
  bool operator==(const Step&) const = default;
};

enum class CounterKind : uint8_t { kStep, kExternal };

struct CounterInfo {
  CounterKind kind = CounterKind::kStep;
  uint32_t arrivals = 0;  // external only: adds per pass
  bool operator==(const CounterInfo&) const = default;
};

// One sequential stream of steps.
struct Lane {
  std::vector<Step> steps;
  bool operator==(const Lane&) const = default;
};

struct RankProgram {
  std::vector<Lane> lanes;
  std::vector<CounterInfo> counters;
  int scratch_chunks = 0;
  bool operator==(const RankProgram&) const = default;
};

struct Plan {
  std::string name;  // the algorithm's, or the user's
  Collective collective = Collective::kBarrier;
  int ranks = 1;
  int root = -1;  // -1 where the collective has none
  int chunks_per_block = 1;
  int scratch_depth = 1;
  std::vector<RankProgram> programs;  // one per rank
  bool operator==(const Plan&) const = default;
};

// "copy", "put", "get", "reduce", "put-reduce", "get-reduce", "accumulate", "signal", "wait",
// "sync", as seen from `rank`.
const char* step_name(const Step& step, int rank);
const char* to_string(Buffer buffer);  // "input", "output", "scratch"

}  // namespace tessera
