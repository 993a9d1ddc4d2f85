// Races and borders: every two conflicting accesses are ordered, and peers stay within a rank's
// pass.
//
// A location keeps its last write, the accumulations and the reads since. Accumulations of one pass
// need no order among each other (plan.h), so that none of them stands for what came before another. If two accesses were unordered but a third
// lay between them in the order of events, that third would be unordered with one of them, so
// looking at the last ones only misses nothing.
#include <algorithm>
#include <utility>

#include "plan/shape.h"
#include "plan/verifier_internal.h"

namespace tessera::verifier {

Memory::Memory(const Plan& plan, uint32_t passes, bool in_place)
    : depth_(static_cast<uint32_t>(plan.scratch_depth)) {
  const int chunks = plan.chunks_per_block;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const int inputs = input_blocks(plan.collective, plan.ranks, plan.root, rank) * chunks;
    const int outputs = output_blocks(plan.collective, plan.ranks, plan.root, rank) * chunks;
    int input = 0;
    int output = inputs;
    if (in_place && has_in_place(plan.collective, plan.ranks, plan.root, rank)) {
      const int shift = in_place_shift(plan.collective, plan.ranks, plan.root, rank) * chunks;
      input = std::max(shift, 0);
      output = std::max(-shift, 0);
    }
    RankMemory memory;
    memory.user = locations_;
    memory.input = static_cast<size_t>(input);
    memory.output = static_cast<size_t>(output);
    memory.user_size = static_cast<size_t>(std::max(input + inputs, output + outputs));
    memory.scratch = memory.user + memory.user_size * passes;
    memory.scratch_size =
        static_cast<size_t>(plan.programs[static_cast<size_t>(rank)].scratch_chunks);
    locations_ = memory.scratch + memory.scratch_size * depth_;
    ranks_.push_back(memory);
  }
}

size_t Memory::at(const Ref& ref, int offset, uint32_t pass) const {
  const RankMemory& memory = ranks_[static_cast<size_t>(ref.rank)];
  const auto chunk = static_cast<size_t>(ref.chunk + offset);
  switch (ref.buffer) {
    case Buffer::kInput:
      return memory.user + pass * memory.user_size + memory.input + chunk;
    case Buffer::kOutput:
      return memory.user + pass * memory.user_size + memory.output + chunk;
    case Buffer::kScratch:
      break;
  }
  return memory.scratch + (pass % depth_) * memory.scratch_size + chunk;
}

bool moves_nothing(const Plan& plan, const Step& step, size_t src, size_t dst) {
  if (step.op != Op::kCopy || src != dst) return false;
  return step.srcs[0].buffer != Buffer::kInput || !reduces(plan.collective);
}

namespace {

struct Access {
  uint32_t lane = UINT32_MAX;
  uint32_t tick = 0;
};

struct AccessNode {
  Access access;
  uint32_t next = UINT32_MAX;
};

struct Location {
  Access write;
  uint32_t reads = UINT32_MAX;  // list of reads since the write
  uint32_t adds = UINT32_MAX;   // list of accumulations since the write, of one pass
};

class RaceCheck : public Watcher {
 public:
  RaceCheck(const Plan& plan, const PlanIndex& index, const Memory& memory)
      : plan_(plan), index_(index), memory_(memory), locations_(memory.locations()) {}

 private:
  Status look(const Event& event) override {
    const Step& step = index_.steps(event.lane)[event.step];
    for (int j = 0; j < step.chunks && step.op != Op::kSync; ++j) {
      for (const Ref& src : step.srcs) {
        if (Status status = read(event, src, j); !status.ok()) return status;
      }
      for (const Ref& dst : step.dsts) {
        const size_t at = memory_.at(dst, j, event.pass);
        if (step.op == Op::kAccumulate) {
          if (Status status = add(event, dst, j, at); !status.ok()) return status;
          continue;
        }
        if (moves_nothing(plan_, step, memory_.at(step.srcs[0], j, event.pass), at)) continue;
        if (Status status = write(event, dst, j, at); !status.ok()) return status;
      }
    }
    return within_step(event, step);
  }

  Status read(const Event& event, const Ref& ref, int offset) {
    Location& location = locations_[memory_.at(ref, offset, event.pass)];
    const Access& write = location.write;
    if (write.lane != UINT32_MAX && !event.after(write.lane, write.tick)) {
      return unordered(event, "reads", ref, offset, write, true);
    }
    if (const Access* add = first_unordered(location.adds, event))
      return unordered(event, "reads", ref, offset, *add, true);
    const Access access{event.lane, tick_of(index_, event)};
    if (location.reads != UINT32_MAX && reads_[location.reads].access.lane == event.lane) {
      reads_[location.reads].access = access;
      return {};
    }
    reads_.push_back({access, location.reads});
    location.reads = static_cast<uint32_t>(reads_.size() - 1);
    return {};
  }

  Status write(const Event& event, const Ref& ref, int offset, size_t at) {
    Location& location = locations_[at];
    if (location.write.lane != UINT32_MAX &&
        !event.after(location.write.lane, location.write.tick)) {
      return unordered(event, "writes", ref, offset, location.write, true);
    }
    if (const Access* add = first_unordered(location.adds, event))
      return unordered(event, "writes", ref, offset, *add, true);
    if (const Access* read = first_unordered(location.reads, event))
      return unordered(event, "writes", ref, offset, *read, false);
    location.write = {event.lane, tick_of(index_, event)};
    location.reads = location.adds = UINT32_MAX;
    return {};
  }

  Status add(const Event& event, const Ref& ref, int offset, size_t at) {
    Location& location = locations_[at];
    const Access& write = location.write;
    if (write.lane != UINT32_MAX && !event.after(write.lane, write.tick))
      return unordered(event, "adds to", ref, offset, write, true);
    if (const Access* read = first_unordered(location.reads, event))
      return unordered(event, "adds to", ref, offset, *read, false);
    // Those of an earlier pass are before this one: a tally is a shared counter (verifier_order.cpp).
    if (location.adds != UINT32_MAX && pass_of(reads_[location.adds].access) != event.pass)
      location.adds = UINT32_MAX;
    reads_.push_back({{event.lane, tick_of(index_, event)}, location.adds});
    location.adds = static_cast<uint32_t>(reads_.size() - 1);
    return {};
  }

  uint32_t pass_of(const Access& access) const {
    return (access.tick - 1) / static_cast<uint32_t>(index_.steps(access.lane).size());
  }

  // The first access of a list that need not be before the event; null: all are.
  const Access* first_unordered(uint32_t node, const Event& event) const {
    for (; node != UINT32_MAX; node = reads_[node].next) {
      const Access& access = reads_[node].access;
      if (!event.after(access.lane, access.tick)) return &access;
    }
    return nullptr;
  }

  // In place, a run that a step writes may lie askew over a run that it reads.
  Status within_step(const Event& event, const Step& step) const {
    if (step.chunks == 1 || step.op == Op::kSync) return {};
    const auto run = static_cast<size_t>(step.chunks);
    for (const Ref& dst : step.dsts) {
      const size_t d = memory_.at(dst, 0, event.pass);
      for (const Ref& src : step.srcs) {
        const size_t s = memory_.at(src, 0, event.pass);
        if (s == d || s >= d + run || d >= s + run) continue;
        const int rank = index_.id(event.lane).rank;
        return Status::error(Code::kPlanRace, "{}: {} and {} overlap in place",
                             index_.describe(event.lane, event.step), describe(src, 0, rank),
                             describe(dst, 0, rank));
      }
    }
    return {};
  }

  // Words it from the side that should have waited: the later pass, or else the one that reads.
  Status unordered(const Event& event, const char* does, const Ref& ref, int offset,
                   const Access& other, bool other_writes) const {
    const auto steps = static_cast<uint32_t>(index_.steps(other.lane).size());
    const uint32_t pass = pass_of(other);
    const char* other_does = other_writes ? "writes" : "reads";
    std::string late = index_.describe(event.lane, event.step);
    std::string early = index_.describe(other.lane, (other.tick - 1) % steps);
    int rank = index_.id(event.lane).rank;
    if (event.pass < pass || (event.pass == pass && !other_writes)) {
      std::swap(late, early);
      std::swap(does, other_does);
      rank = index_.id(other.lane).rank;
    }
    const uint32_t apart = std::max(pass, event.pass) - std::min(pass, event.pass);
    return Status::error(Code::kPlanRace, "{} {} {} without waiting for {}, which {} it{}", late,
                         does, describe(ref, offset, rank), early, other_does,
                         apart == 0 ? "" : fmt::format(" {} pass(es) earlier", apart));
  }

  const Plan& plan_;
  const PlanIndex& index_;
  const Memory& memory_;
  std::vector<Location> locations_;
  std::vector<AccessNode> reads_;  // and accumulations
};

}  // namespace

std::unique_ptr<Watcher> race_check(const Plan& plan, const PlanIndex& index,
                                    const Memory& memory) {
  return std::make_unique<RaceCheck>(plan, index, memory);
}

}  // namespace tessera::verifier
