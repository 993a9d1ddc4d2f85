// The interpreter: runs a rank's program, one template for every kind of device ("space").
//
// A run is one epoch: `passes` consecutive passes of the plan, one per slice of the message. Lanes
// advance independently; advance() runs a lane until it is done or a wait is not met, and never
// blocks: who calls it decides how to wait. Decoding a step costs nanoseconds; nothing here
// allocates, locks, logs or reads the environment.
//
// A Space provides (see exec/host_space.h for the host's):
//   using Counter, SlotHeader, Place       a counter; a slot's header line; the address of an
//                                          operand
//   bool reached(const Counter&, target)   acquire
//   uint64_t value(const Counter&)         acquire
//   void publish(member, Counter&, n)      release add; wakes the member, if it sleeps
//   void publish_value(member, Counter&, value)              the same by its only adder
//   void publish_slot(member, SlotHeader*, value, fingerprint)   and with the slot's fingerprint
//   Place place(void*)                     an operand in mapped memory
//   void expect(slot, bytes)               hint: the slot will be read when its counter is raised
//   void own_next(member, slot, bytes)     hint: this rank will write it in the next pass
//   void* small_or_data(SlotHeader*, bytes)
//   places(), raw(), members()             arrays for the operands of one chunk (see Operands)
//   bool combine(const Operands&)          moves or reduces one chunk; false: failed, the space
//                                          knows why
//
// Invariants relied upon: I3 (waits compare >=), I4 (the space's publish and acquire are the only
// synchronisation), I5 (data is stored before the counters that announce it are raised), I6 (a
// blocked lane tells what it waits for).
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/program.h"
#include "plan/partition.h"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TESSERA_ANY_DEVICE __host__ __device__
#else
#define TESSERA_ANY_DEVICE
#endif

namespace tessera {

enum class Progress : uint8_t {
  kBlocked,   // a wait is not met
  kDone,      // all passes of this run
  kMismatch,  // a put carries another call's fingerprint; LaneCursor::step says where
  kFailed,    // the space could not move data
};

// Where a lane stands. Zero at the start of a run.
struct LaneCursor {
  uint32_t slice = 0;
  uint32_t step = 0;
  uint32_t wait = 0;
  uint32_t moved = 0;  // steps done, for messages and progress
};

// One run of a linked plan, by one rank.
template <class Space>
struct Run {
  using Place = typename Space::Place;
  std::byte* const* regions;  // per member
  const Place* inputs;        // per member; only those that the plan addresses need be set
  const Place* outputs;
  // per wait of the program: the last value seen of a counter waited for with a lag; zero at first,
  // kept between runs
  uint64_t* seen;
  uint64_t first_pass;
  uint64_t fingerprint;
  size_t count;           // elements of a block
  size_t slice_elements;  // elements of a block moved by one pass
  uint32_t passes;
  uint32_t element_bytes;
};

// The operands of one chunk's move or reduction.
template <class Place>
struct Operands {
  const Place* dsts;
  const Place* srcs;
  const uint16_t* raw;      // per src: 1 + the member whose raw input it is, or 0
  const uint16_t* members;  // per dst: whose memory it is
  uint32_t num_dsts, num_srcs;
  size_t elements;
  bool reduce;     // else copy
  bool completes;  // apply the post-operation
};

template <class Space>
class Interpreter {
 public:
  using Place = typename Space::Place;
  using Counter = typename Space::Counter;
  using Slot = typename Space::SlotHeader;

  TESSERA_ANY_DEVICE Interpreter(const ProgramView& program, const Run<Space>& run, Space& space)
      : program_(program), run_(run), space_(space) {}

  // Goes on with a lane until it blocks, `spins` looks at an unmet wait included.
  TESSERA_ANY_DEVICE Progress advance(uint32_t lane, LaneCursor& at, int spins) {
    const LaneCode& code = program_.lanes[lane];
    for (; at.slice < run_.passes; ++at.slice, at.step = 0) {
      const Pass pass = pass_of(at.slice);
      for (; at.step < code.steps; ++at.step, at.wait = 0, ++at.moved) {
        const StepCode& step = program_.steps[code.first_step + at.step];
        const Progress waited = await(step, at, pass, spins);
        if (waited != Progress::kDone) return waited;
        if (step.op != static_cast<uint8_t>(Op::kSync) && !move(step, at.slice, pass))
          return Progress::kFailed;
        signal(step, pass);
      }
    }
    return Progress::kDone;
  }

  // The counter and target that the wait at the cursor stands for.
  TESSERA_ANY_DEVICE const Counter& waited(const WaitCode& wait, uint32_t slice,
                                           uint64_t& target) const {
    return waited(wait, pass_of(slice), target);
  }

 private:
  struct Pass {
    uint64_t number;
    uint64_t use;          // how often its copy of scratch was used, this time included
    size_t slots;          // where its copy begins in a region
    size_t slots_of_next;  // the same of the next pass
  };

  TESSERA_ANY_DEVICE Pass pass_of(uint32_t slice) const {
    const uint64_t number = run_.first_pass + slice;
    const uint64_t use = number / program_.depth;
    const size_t copy = number - use * program_.depth;
    const size_t next = copy + 1 == program_.depth ? 0 : copy + 1;
    const size_t first = size_t{program_.counters} * 64;
    const size_t bytes = program_.slots * program_.slot_stride;
    return {number, use + 1, first + copy * bytes, first + next * bytes};
  }

  TESSERA_ANY_DEVICE const Counter& waited(const WaitCode& wait, const Pass& pass,
                                           uint64_t& target) const {
    if (wait.embedded) {
      target = pass.use;
      return slot(program_.rank, wait.counter, pass)->counter;
    }
    target = pass.number < wait.lag ? 0 : (pass.number - wait.lag) * wait.per_pass + wait.increment;
    return counter(program_.rank, wait.counter);
  }

  TESSERA_ANY_DEVICE Counter& counter(uint16_t member, uint32_t id) const {
    return *reinterpret_cast<Counter*>(run_.regions[member] + size_t{id} * 64);
  }

  TESSERA_ANY_DEVICE Slot* slot(uint16_t member, uint32_t index, const Pass& pass) const {
    return slot_at(member, pass.slots + index * program_.slot_stride);
  }
  // Of a block, in one pass: a slot gets so much at most.
  TESSERA_ANY_DEVICE size_t slice_bytes() const { return run_.slice_elements * run_.element_bytes; }
  TESSERA_ANY_DEVICE Slot* next_slot(const SignalCode& code, const Pass& pass) const {
    return slot_at(code.rank, pass.slots_of_next + code.counter * program_.slot_stride);
  }
  TESSERA_ANY_DEVICE Slot* slot_at(uint16_t member, size_t offset) const {
    return reinterpret_cast<Slot*>(run_.regions[member] + offset);
  }

  TESSERA_ANY_DEVICE Progress await(const StepCode& step, LaneCursor& at, const Pass& pass,
                                    int spins) {
    for (; at.wait < step.waits; ++at.wait) {
      const WaitCode& wait = program_.waits[step.first_wait + at.wait];
      uint64_t target;
      const Counter& awaited = waited(wait, pass, target);
      for (int left = spins; !met(wait, step.first_wait + at.wait, awaited, target); --left) {
        if (left <= 0) return Progress::kBlocked;
        if (wait.embedded) space_.expect(slot(program_.rank, wait.counter, pass), slice_bytes());
        space_.pause();
      }
      if (wait.embedded) {
        if (slot(program_.rank, wait.counter, pass)->fingerprint != run_.fingerprint)
          return Progress::kMismatch;
      }
    }
    return Progress::kDone;
  }

  // A credit, waited for with a lag, is mostly there long before: the last value seen saves
  // fetching its line, which its adder writes in every pass (I3: what was reached stays reached).
  TESSERA_ANY_DEVICE bool met(const WaitCode& wait, uint32_t index, const Counter& counter,
                              uint64_t target) {
    if (wait.lag == 0) return space_.reached(counter, target);
    if (run_.seen[index] < target) run_.seen[index] = space_.value(counter);
    return run_.seen[index] >= target;
  }

  TESSERA_ANY_DEVICE void signal(const StepCode& step, const Pass& pass) {
    for (uint32_t i = 0; i < step.signals; ++i) {
      const SignalCode& code = program_.signals[step.first_signal + i];
      if (code.embedded) {
        space_.publish_slot(code.rank, slot(code.rank, code.counter, pass), pass.use,
                            run_.fingerprint);
        if (program_.depth > 1) space_.own_next(code.rank, next_slot(code, pass), slice_bytes());
      } else if (code.per_pass != 0) {
        if ((pass.number + 1) & (code.period - 1)) continue;
        space_.publish_value(code.rank, counter(code.rank, code.counter),
                             (pass.number + 1) * code.per_pass);
      } else {
        space_.publish(code.rank, counter(code.rank, code.counter), code.increment);
      }
    }
  }

  TESSERA_ANY_DEVICE Place resolve(const OperandCode& code, uint32_t offset, uint32_t slice,
                                   const Pass& pass, const ChunkRange& range) const {
    const uint32_t chunk = code.chunk + offset;
    if (code.buffer == static_cast<uint8_t>(Buffer::kScratch)) {
      Slot* header = slot(code.rank, chunk, pass);
      return space_.place(space_.small_or_data(header, range.length * run_.element_bytes));
    }
    const Place* bases =
        code.buffer == static_cast<uint8_t>(Buffer::kInput) ? run_.inputs : run_.outputs;
    const size_t block = program_.chunks_per_block == 1 ? chunk : chunk / program_.chunks_per_block;
    const size_t element = block * run_.count + slice * run_.slice_elements + range.begin;
    return bases[code.rank] + element * run_.element_bytes;
  }

  TESSERA_ANY_DEVICE bool move(const StepCode& step, uint32_t slice, const Pass& pass) {
    const size_t begin = slice * run_.slice_elements;
    const size_t left = run_.count - begin;
    const size_t length = left < run_.slice_elements ? left : run_.slice_elements;
    for (uint32_t j = 0; j < step.chunks; ++j) {
      const uint32_t c =
          program_.chunks_per_block == 1 ? 0 : (step.chunk + j) % program_.chunks_per_block;
      const ChunkRange range =
          chunk_range(length, program_.chunks_per_block, c, chunk_unit(run_.element_bytes));
      if (range.length == 0) continue;
      if (!move_chunk(step, j, slice, pass, range)) return false;
    }
    return true;
  }

  // Whether others of its tally came before, in this pass (plan.h).
  TESSERA_ANY_DEVICE bool adds(const StepCode& step, const Pass& pass) const {
    if (step.tally == 0) return false;
    const uint32_t tally = program_.signals[step.first_signal].counter;
    return space_.value(counter(program_.rank, tally)) > pass.number * step.tally;
  }

  TESSERA_ANY_DEVICE bool move_chunk(const StepCode& step, uint32_t j, uint32_t slice,
                                     const Pass& pass, const ChunkRange& range) {
    Place* places = space_.places();
    uint16_t* raw = space_.raw();
    uint16_t* members = space_.members();
    for (uint32_t i = 0; i < uint32_t{step.dsts} + step.srcs; ++i) {
      const OperandCode& code = program_.operands[step.first_operand + i];
      places[i] = resolve(code, j, slice, pass, range);
      members[i] = code.rank;
      raw[i] = code.buffer == static_cast<uint8_t>(Buffer::kInput)
                   ? static_cast<uint16_t>(code.rank + 1)
                   : uint16_t{0};
    }
    uint32_t srcs = step.srcs;
    bool reduce = step.op == static_cast<uint8_t>(Op::kReduce);
    if (adds(step, pass)) {  // the destination is a source, too
      reduce = true;
      places[step.dsts + srcs] = places[0];
      raw[step.dsts + srcs++] = 0;
    }
    return space_.combine(Operands<Place>{places, places + step.dsts, raw + step.dsts, members,
                                          step.dsts, srcs, range.length, reduce, step.completes});
  }

  const ProgramView& program_;
  const Run<Space>& run_;
  Space& space_;
};

}  // namespace tessera
