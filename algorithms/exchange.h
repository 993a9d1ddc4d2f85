// Staged exchange: slots in a peer's scratch, the counter that says "your slot is full", and the
// credit that says "my slot is free".
//
//      rank 0                                rank 1
//      put ----------- data ---------------> slot
//          ----------- arrived +1 ---------> copy or reduce from the slot
//          <---------- credit  +1 ----------
//      put of a later pass waits for the credit of the pass that used the same copy of the slot
//
// The low-latency shape, which every slot made here has unless a plan reuses slots by itself: one
// put per pass fills a slot, with a counter of its own; the step that waits for that counter reads
// the slot; nobody but the slot's owner reads it, and no local step writes it. A link may therefore
// let each cache line of the slot carry its own flag in place of the counter.
//
// Which plans need credits. In a collective where every rank's result depends on every rank
// (all-reduce, all-gather, reduce-scatter, all-to-all) a rank with one lane ends pass p + 1 only
// after every other rank has begun pass p + 1, thus has ended pass p. Two copies of scratch then
// make credits unnecessary; with one copy, with more lanes, or where data flows one way, credits
// are needed.
#pragma once

#include <vector>

#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace tessera {

// A run of `chunks` scratch slots of rank `to`, filled by one put of rank `from` in each pass.
struct Slot {
  int from = 0;
  int to = 0;
  int first = 0;
  int chunks = 1;
  int arrived = 0;  // counter of `to`
  int credit = -1;  // counter of `from`, or none

  Ref ref(int offset = 0) const { return {to, Buffer::kScratch, first + offset}; }
  // Of a slot that every rank has: that of `rank`, given rank 0's.
  Slot at(int rank, int ranks) const {
    return {(from + rank) % ranks, (to + rank) % ranks, first, chunks, arrived, credit};
  }
};

class Exchange {
 public:
  enum class Credits { kAlways, kNever };

  Exchange(PlanBuilder& plan, int scratch_depth, Credits credits)
      : plan_(plan), depth_(static_cast<uint32_t>(scratch_depth)), credits_(credits) {}

  // For collectives in which every rank's result depends on every rank, one lane per rank.
  static Credits symmetric(const AlgorithmParams& params) {
    return params.scratch_depth < 2 ? Credits::kAlways : Credits::kNever;
  }

  // New slots. Runs made one after the other for the same `to` are adjacent.
  Slot slot(int from, int to, int chunks = 1);
  // The same slot at every rank, filled by the rank on its left, with the same numbers everywhere;
  // as rank 0 has it, see at(). Plans that rotate are made of these.
  Slot slot_at_each(const AlgorithmParams& params);

  // `step` of slot.from fills the slot.
  void fill(StepRef step, const Slot& slot) const;
  // `step` of slot.to is the first to read the slot.
  void await(StepRef step, const Slot& slot) const;
  // `step` of slot.to is the last to read the slot.
  void release(StepRef step, const Slot& slot) const;
  // `step` of slot.to is the only one to read the slot.
  void take(StepRef step, const Slot& slot) const;

 private:
  PlanBuilder& plan_;
  uint32_t depth_;
  Credits credits_;
};

inline Ref input(int rank, int chunk) { return {rank, Buffer::kInput, chunk}; }
inline Ref output(int rank, int chunk) { return {rank, Buffer::kOutput, chunk}; }

// The plan of a communicator of one rank: input to output, with the reduction's pre- and
// post-operation where there is one.
Plan alone(const char* name, Collective collective, const AlgorithmParams& params);

// A run of blocks of a ring of `ranks` blocks, cut where it wraps.
struct BlockRun {
  int first = 0;
  int count = 0;
};
std::vector<BlockRun> cut_at_wrap(int first, int count, int ranks);

// How many programs a builder of a plan that rotates has to fill.
inline int programs(const AlgorithmParams& params) { return params.first_only ? 1 : params.ranks; }

inline int wrap(int value, int ranks) { return ((value % ranks) + ranks) % ranks; }
inline bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }
int floor_power_of_two(int n);  // the largest power of two <= n; n >= 1
int lowest_bit(int v);          // v > 0

}  // namespace tessera
