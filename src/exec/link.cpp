#include "exec/link.h"

#include <algorithm>
#include <bit>
#include <map>

#include "sync/slot.h"

namespace tessera {
namespace {

constexpr size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Who raises a counter, over the whole plan.
struct CounterUse {
  int signals = 0;        // signal entries in one pass
  uint32_t per_pass = 0;  // sum of their increments
  int from = 0;           // a signalling rank
  uint32_t lag = ~0u;     // smallest of its waits
  int slot = -1;          // the one slot of the owner that the signalling step writes
  bool entry = false;     // raised by a lane's first step that moves nothing and waits for nothing
};

// A credit waited for with lag g may be given every k-th pass, k <= g, for all passes since: pass p
// then waits for no pass later than p - g + k - 1, which is an earlier pass still, and passes that
// wait for earlier ones only cannot wait in a circle. Giver and taker pass the counter's line to
// and fro k times less often. Half the lag lets both go on while a credit travels.
uint32_t credit_period(uint32_t lag) {
  return lag == ~0u ? 1 : std::bit_floor(std::max(2u, lag) / 2);
}

using Uses = std::vector<std::vector<CounterUse>>;  // [owner][counter]

void note_signals(int rank, const Step& step, bool first, Uses& uses) {
  for (const Signal& signal : step.signals) {
    CounterUse& use = uses[signal.rank][signal.counter];
    use.signals += 1;
    use.per_pass += signal.increment;
    use.from = rank;
    use.entry = first && step.op == Op::kSync && step.waits.empty();
    int slots = 0;
    for (const Ref& dst : step.dsts) {
      if (dst.rank == signal.rank && dst.buffer == Buffer::kScratch) {
        use.slot = dst.chunk;
        ++slots;
      }
    }
    if (slots != 1 || signal.increment != 1 || step.op == Op::kAccumulate) use.slot = -1;
  }
}

// True if the lane reads the slot in step `first` or later: then reading the header along with the
// wait is as safe from the slot's next writer as reading the data is.
bool reads_slot(const Lane& lane, size_t first, int rank, int slot) {
  for (size_t i = first; i < lane.steps.size(); ++i) {
    const Step& step = lane.steps[i];
    for (const Ref& src : step.srcs) {
      if (src.rank == rank && src.buffer == Buffer::kScratch && src.chunk <= slot &&
          slot < src.chunk + step.chunks)
        return true;
    }
  }
  return false;
}

// A counter is embedded in the slot whose one put it announces: it is signalled once per pass, no
// other counter claims the slot, nobody waits for it with a lag, and it is not external.
void choose_embedded(const Plan& plan, Uses& uses) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    std::map<int, int> writers;  // slot -> steps that write it
    for (int other = 0; other < plan.ranks; ++other) {
      for (const Lane& lane : plan.programs[other].lanes) {
        for (const Step& step : lane.steps) {
          for (const Ref& dst : step.dsts) {
            if (dst.rank == rank && dst.buffer == Buffer::kScratch)
              for (int j = 0; j < step.chunks; ++j) ++writers[dst.chunk + j];
          }
        }
      }
    }
    std::map<int, int> claims;
    for (CounterUse& use : uses[rank]) {
      if (use.signals != 1 || (use.slot >= 0 && writers[use.slot] != 1)) use.slot = -1;
      if (use.slot >= 0 && ++claims[use.slot] > 1) use.slot = -1;
    }
    std::map<int, int> waits;  // counter -> steps that wait for it
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (size_t i = 0; i < lane.steps.size(); ++i) {
        for (const Wait& wait : lane.steps[i].waits) {
          CounterUse& use = uses[rank][wait.counter];
          use.lag = std::min(use.lag, wait.lag);
          const bool once = ++waits[wait.counter] == 1;
          if (!once || wait.lag != 0 || !reads_slot(lane, i, rank, use.slot)) use.slot = -1;
        }
      }
    }
  }
}

Uses find_uses(const Plan& plan) {
  Uses uses(plan.ranks);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    uses[rank].resize(plan.programs[rank].counters.size());
    for (size_t i = 0; i < uses[rank].size(); ++i) {
      const CounterInfo& info = plan.programs[rank].counters[i];
      if (info.kind == CounterKind::kExternal) uses[rank][i].per_pass = info.arrivals;
    }
  }
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const Lane& lane : plan.programs[rank].lanes) {
      for (size_t i = 0; i < lane.steps.size(); ++i)
        note_signals(rank, lane.steps[i], i == 0, uses);
    }
  }
  choose_embedded(plan, uses);
  return uses;
}

class Encoder {
 public:
  Encoder(const Plan& plan, int rank, const LinkOptions& options)
      : plan_(plan), uses_(find_uses(plan)), options_(options) {
    for (const RankProgram& program : plan.programs) {
      out_.slots = std::max<uint32_t>(out_.slots, program.scratch_chunks);
      out_.counters = std::max<uint32_t>(out_.counters, program.counters.size());
    }
    out_.depth = plan.scratch_depth;
    out_.chunks_per_block = plan.chunks_per_block;
    out_.slot_stride = sizeof(SlotHeader) + round_up(options.slot_bytes, kCacheLine);
    out_.rank = static_cast<uint16_t>(rank);
  }

  Program run() && {
    for (const Lane& lane : plan_.programs[out_.rank].lanes) {
      const auto first = static_cast<uint32_t>(out_.steps.size());
      for (const Step& step : lane.steps) encode(step);
      out_.lanes.push_back({first, static_cast<uint32_t>(out_.steps.size()) - first});
    }
    return std::move(out_);
  }

 private:
  bool dropped(int owner, int counter) const {
    return options_.entered && uses_[owner][counter].signals == 1 && uses_[owner][counter].entry;
  }

  void encode(const Step& step) {
    StepCode code{};
    code.op = static_cast<uint8_t>(step.op);
    code.completes = step.completes;
    code.first_operand = static_cast<uint32_t>(out_.operands.size());
    code.first_wait = static_cast<uint32_t>(out_.waits.size());
    code.first_signal = static_cast<uint32_t>(out_.signals.size());
    code.chunk = step.chunk;
    code.chunks = step.chunks;
    for (const Ref& ref : step.dsts) encode(ref);
    for (const Ref& ref : step.srcs) encode(ref);
    for (const Wait& wait : step.waits) encode(wait);
    for (const Signal& signal : step.signals) encode(signal);
    code.dsts = static_cast<uint16_t>(step.dsts.size());
    code.srcs = static_cast<uint16_t>(step.srcs.size());
    code.waits = static_cast<uint16_t>(out_.waits.size() - code.first_wait);
    code.signals = static_cast<uint16_t>(out_.signals.size() - code.first_signal);
    // An accumulation may read its destination as well.
    const uint32_t more = step.op == Op::kAccumulate ? 1 : 0;
    if (more > 0) code.tally = uses_[out_.rank][step.signals[0].counter].per_pass;
    out_.max_operands = std::max<uint32_t>(out_.max_operands, code.dsts + code.srcs + more);
    if (step.op == Op::kSync && code.waits == 0 && code.signals == 0) return;
    out_.steps.push_back(code);
  }

  void encode(const Ref& ref) {
    out_.operands.push_back({static_cast<uint16_t>(ref.rank), static_cast<uint8_t>(ref.buffer),
                             static_cast<uint32_t>(ref.chunk)});
  }

  void encode(const Wait& wait) {
    if (dropped(out_.rank, wait.counter)) return;
    const CounterUse& use = uses_[out_.rank][wait.counter];
    const bool embedded = use.slot >= 0;
    out_.waits.push_back({static_cast<uint32_t>(embedded ? use.slot : wait.counter), wait.increment,
                          wait.lag, use.per_pass, static_cast<uint16_t>(use.from), embedded});
  }

  void encode(const Signal& signal) {
    if (dropped(signal.rank, signal.counter)) return;
    const CounterUse& use = uses_[signal.rank][signal.counter];
    const bool embedded = use.slot >= 0;
    const bool alone = use.signals == 1;
    out_.signals.push_back({static_cast<uint32_t>(embedded ? use.slot : signal.counter),
                            signal.increment, alone ? use.per_pass : 0,
                            alone ? credit_period(use.lag) : 1, static_cast<uint16_t>(signal.rank),
                            embedded});
  }

  const Plan& plan_;
  Uses uses_;
  LinkOptions options_;
  Program out_;
};

}  // namespace

Program link(const VerifiedPlan& plan, int rank, const LinkOptions& options) {
  return Encoder(plan.plan(), rank, options).run();
}

size_t region_bytes(const Program& program) {
  return program.counters * sizeof(PaddedCounter) +
         size_t{program.depth} * program.slots * program.slot_stride;
}

}  // namespace tessera
