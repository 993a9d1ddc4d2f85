// Coverage: follows symbolic values through the plan.
//
// A value is an input chunk's index and the set of ranks whose contributions it holds. Where the
// plan has no race every execution reads the same values, so one order shows them all.
#include <algorithm>

#include "plan/shape.h"
#include "plan/verifier_internal.h"

namespace tessera::verifier {
namespace {

// Interns values: equal values have equal numbers. 0 is no value.
class ValueTable {
 public:
  explicit ValueTable(int ranks)
      : words_((static_cast<size_t>(ranks) + 63) / 64), slots_(1024), set_(words_) {
    add(0, set_.data());
  }

  // Of one contribution; each is added once, and before any that is interned.
  uint32_t add_single(int rank, int input_chunk) {
    set_.assign(words_, 0);
    set_[static_cast<size_t>(rank) / 64] = uint64_t{1} << (rank % 64);
    return add(input_chunk, set_.data());
  }

  // Of several contributions.
  uint32_t intern(int input_chunk, const std::vector<uint64_t>& set) {
    uint64_t hash = static_cast<uint64_t>(input_chunk) * 0x9E3779B97F4A7C15u;
    for (const uint64_t word : set) hash = (hash ^ word) * 0xD6E8FEB86659FD93u + (hash >> 29);
    for (size_t at = hash >> 16;; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.value == 0) {
        slot = {hash, add(input_chunk, set.data())};
        const uint32_t value = slot.value;
        if (++interned_ * 2 > slots_.size()) grow();
        return value;
      }
      if (slot.hash == hash && chunk_[slot.value] == input_chunk &&
          std::equal(set.begin(), set.end(), this->set(slot.value)))
        return slot.value;
    }
  }

  int input_chunk(uint32_t value) const { return chunk_[value]; }
  const uint64_t* set(uint32_t value) const { return &sets_[value * words_]; }
  size_t words() const { return words_; }

  int contributors(uint32_t value) const {
    int count = 0;
    for (size_t w = 0; w < words_; ++w) count += __builtin_popcountll(set(value)[w]);
    return count;
  }

  // Lowest rank in `value` (when `in`) or not in it; -1 if there is none below `ranks`.
  int first_rank(uint32_t value, int ranks, bool in) const {
    for (int rank = 0; rank < ranks; ++rank) {
      const bool has = ((set(value)[static_cast<size_t>(rank) / 64] >> (rank % 64)) & 1) != 0;
      if (has == in) return rank;
    }
    return -1;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t value = 0;
  };

  uint32_t add(int input_chunk, const uint64_t* set) {
    chunk_.push_back(input_chunk);
    sets_.insert(sets_.end(), set, set + words_);
    return static_cast<uint32_t>(chunk_.size() - 1);
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 4);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value == 0) continue;
      size_t at = slot.hash >> 16;
      while (slots_[at & (slots_.size() - 1)].value != 0) ++at;
      slots_[at & (slots_.size() - 1)] = slot;
    }
  }

  size_t words_;
  std::vector<int> chunk_;
  std::vector<uint64_t> sets_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t interned_ = 0;
  std::vector<uint64_t> set_;
};

struct Content {
  uint32_t value = 0;
  uint32_t pass = 0;
  bool raw = false;   // an input as the user left it
  uint32_t adds = 0;  // accumulations that made it, of `of`
  uint64_t of = 0;
};

struct Operand {
  uint32_t value = 0;
  bool raw = false;  // without the pre-operation so far
};

class ValueCheck : public ValueWatcher {
 public:
  ValueCheck(const Plan& plan, const PlanIndex& index, const Memory& memory,
             const ValueWatcher* separate)
      : plan_(plan),
        index_(index),
        passes_(passes_needed(plan)),
        memory_(memory),
        separate_(separate),
        table_(plan.ranks),
        contents_(memory.locations()) {
    for (uint32_t lane = 0; lane < index.lanes(); ++lane)
      found_.completes.emplace_back(index.steps(lane).size(), kUnknown);
    fill_inputs();
  }

  const Values& values() const override { return found_; }

 private:
  Status look(const Event& event) override {
    const Step& step = index_.steps(event.lane)[event.step];
    for (int j = 0; j < step.chunks && step.op != Op::kSync; ++j) {
      if (Status status = run_chunk(event, step, j); !status.ok()) return status;
    }
    return {};
  }

  static constexpr uint8_t kUnknown = 2;

  template <class... Args>
  Status fault(const Event& event, fmt::format_string<Args...> format, Args&&... args) const {
    return Status(Code::kPlanCoverage, index_.describe(event.lane, event.step) + " " +
                                           fmt::format(format, std::forward<Args>(args)...));
  }

  // The first one of a pass stores, as the tally tells it.
  Status accumulate_chunk(const Event& event, const Step& step, int j) {
    const Result<Operand> part = read(event, step, step.srcs[0], j);
    if (!part.ok()) return part.status();
    Content& sum = contents_[memory_.at(step.dsts[0], j, event.pass)];
    const bool first = sum.adds == 0 || sum.pass != event.pass;
    set_.assign(table_.words(), 0);
    if (!first) std::copy_n(table_.set(sum.value), table_.words(), set_.begin());
    const uint32_t before = first ? part->value : sum.value;
    if (Status status = join(event, step, 0, j, before, part->value); !status.ok()) return status;
    const uint32_t result = first ? part->value : table_.intern(table_.input_chunk(before), set_);
    if (table_.contributors(result) == plan_.ranks) {
      return fault(event,
                   "may complete {}: the last contribution is to be added by a step that "
                   "comes after all accumulations",
                   describe(step.dsts[0], j, index_.id(event.lane).rank));
    }
    found_.completes[event.lane][event.step] = 0;
    const int rank = index_.id(event.lane).rank;
    const uint64_t of = index_.facts(index_.counter(rank, step.signals[0].counter)).per_pass;
    sum = {result, event.pass, false, first ? 1 : sum.adds + 1, of};
    return {};
  }

  Status run_chunk(const Event& event, const Step& step, int j) {
    if (step.op == Op::kAccumulate) return accumulate_chunk(event, step, j);
    const bool several = step.srcs.size() > 1;
    if (several) set_.assign(table_.words(), 0);
    Operand first;
    bool raw = false;
    for (size_t s = 0; s < step.srcs.size(); ++s) {
      Result<Operand> operand = read(event, step, step.srcs[s], j);
      if (!operand.ok()) return operand.status();
      if (s == 0) first = operand.value();
      raw = raw || operand->raw;
      if (!several) break;
      if (Status status = join(event, step, s, j, first.value, operand->value); !status.ok())
        return status;
    }
    const uint32_t result =
        several ? table_.intern(table_.input_chunk(first.value), set_) : first.value;
    // A complete operand that is not raw was completed before; more than one operand means that
    // none was.
    const bool completes =
        reduces(plan_.collective) && (raw || several) && table_.contributors(result) == plan_.ranks;
    uint8_t& known = found_.completes[event.lane][event.step];
    if (known == kUnknown) known = completes ? 1 : 0;
    if ((known == 1) != completes) {
      return fault(event, "completes some chunks of its run and not others");
    }
    const size_t src = memory_.at(step.srcs[0], j, event.pass);
    for (const Ref& dst : step.dsts) {
      const size_t at = memory_.at(dst, j, event.pass);
      if (!moves_nothing(plan_, step, src, at)) contents_[at] = {result, event.pass, false};
    }
    return {};
  }

  // What the users' inputs hold. In place an output chunk starts with it, too.
  void fill_inputs() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const int chunks =
          input_blocks(plan_.collective, plan_.ranks, plan_.root, rank) * plan_.chunks_per_block;
      for (int c = 0; c < chunks; ++c) {
        const uint32_t value = table_.add_single(rank, c);
        if (c == 0) first_single_.push_back(value);
        for (uint32_t pass = 0; pass < passes_; ++pass) {
          contents_[memory_.at({rank, Buffer::kInput, c}, 0, pass)] = {value, pass, true};
        }
      }
      if (chunks == 0) first_single_.push_back(0);
    }
  }

  // What the user's input chunk holds.
  uint32_t single(int rank, int input_chunk) const {
    return first_single_[static_cast<size_t>(rank)] + static_cast<uint32_t>(input_chunk);
  }

  // A raw contribution counts as nothing where a reduction wants it with the pre-operation applied.
  bool undefined(const Content& content) const {
    return content.value == 0 || (content.raw && reduces(plan_.collective));
  }

  // Adds the contributions of source s to set_.
  Status join(const Event& event, const Step& step, size_t s, int j, uint32_t first,
              uint32_t value) {
    const int rank = index_.id(event.lane).rank;
    if (table_.input_chunk(value) != table_.input_chunk(first)) {
      return fault(event, "combines {}, which holds input chunk {}, with input chunk {}",
                   describe(step.srcs[s], j, rank), table_.input_chunk(value),
                   table_.input_chunk(first));
    }
    const uint64_t* set = table_.set(value);
    for (size_t w = 0; w < table_.words(); ++w) {
      if (const uint64_t twice = set_[w] & set[w]; twice != 0) {
        return fault(event, "combines {} with the contribution of rank {}, which contributes twice",
                     describe(step.srcs[s], j, rank),
                     w * 64 + static_cast<size_t>(__builtin_ctzll(twice)));
      }
      set_[w] |= set[w];
    }
    return {};
  }

  // The next value read. A fault with separate buffers, after which they are not followed, is told
  // first anyway.
  bool differs_from_separate(uint32_t value) const {
    if (separate_ == nullptr) return false;
    const std::vector<uint32_t>& reads = separate_->values().reads;
    return found_.reads.size() < reads.size() && reads[found_.reads.size()] != value;
  }

  Result<Operand> read(const Event& event, const Step& step, const Ref& ref, int j) {
    const int rank = index_.id(event.lane).rank;
    const Content content = contents_[memory_.at(ref, j, event.pass)];
    const uint32_t value = content.value;
    if (ref.buffer == Buffer::kInput) {
      // Only in place can an input have been written. The same data again does no harm, unless a
      // pre-operation was applied.
      const bool intact = value == single(ref.rank, ref.chunk + j);
      if (!intact || (!content.raw && reduces(plan_.collective))) {
        return fault(event, "reads {} after it was overwritten in place", describe(ref, j, rank));
      }
    } else if (undefined(content)) {
      return fault(event, "reads {}, which was never written", describe(ref, j, rank));
    } else if (content.pass != event.pass) {
      return fault(event, "reads {}, which holds data of {} pass(es) earlier",
                   describe(ref, j, rank), event.pass - content.pass);
    } else if (content.adds < content.of) {
      return fault(event, "reads {}, to which {} of {} accumulations have added",
                   describe(ref, j, rank), content.adds, content.of);
    }
    const int expected = (step.chunk + j) % plan_.chunks_per_block;
    if (table_.input_chunk(value) % plan_.chunks_per_block != expected) {
      return fault(event,
                   "reads {}, which holds input chunk {}, but the step moves chunk {} of a block",
                   describe(ref, j, rank), table_.input_chunk(value), expected);
    }
    if (differs_from_separate(value)) {
      return fault(event, "reads {}, which holds other data in place than with separate buffers",
                   describe(ref, j, rank));
    }
    found_.reads.push_back(value);
    return Operand{value, ref.buffer == Buffer::kInput};
  }

  Status finish() override {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const int blocks = output_blocks(plan_.collective, plan_.ranks, plan_.root, rank);
      for (int block = 0; block < blocks; ++block) {
        for (int c = 0; c < plan_.chunks_per_block; ++c) {
          if (Status status = check_output(rank, block, c); !status.ok()) return status;
        }
      }
    }
    return {};
  }

  int contributor(int rank, int block) const {
    if (block < plan_.ranks && required(rank, block, block) >= 0) return block;
    for (int from = 0; from < plan_.ranks; ++from) {
      if (required(rank, block, from) >= 0) return from;
    }
    return -1;
  }

  int required(int rank, int block, int from) const {
    return required_input_block(plan_.collective, plan_.ranks, plan_.root, rank, block, from);
  }

  Status check_output(int rank, int block, int c) {
    const int from = contributor(rank, block);
    const int chunk = block * plan_.chunks_per_block + c;
    const int input_chunk = required(rank, block, from) * plan_.chunks_per_block + c;
    for (uint32_t pass = 0; pass < passes_; ++pass) {
      const size_t at = memory_.at({rank, Buffer::kOutput, chunk}, 0, pass);
      if (undefined(contents_[at])) return lacks(rank, chunk, "is never written");
      const uint32_t value = contents_[at].value;
      if (table_.input_chunk(value) != input_chunk) {
        return lacks(rank, chunk,
                     fmt::format("ends with input chunk {} instead of {}",
                                 table_.input_chunk(value), input_chunk));
      }
      if (!reduces(plan_.collective)) {
        if (value == single(from, input_chunk)) continue;
        return lacks(rank, chunk,
                     fmt::format("ends with data of rank {} instead of rank {}",
                                 table_.first_rank(value, plan_.ranks, true), from));
      }
      if (table_.contributors(value) < plan_.ranks) {
        const int missing = table_.first_rank(value, plan_.ranks, false);
        return lacks(rank, chunk, fmt::format("ends without the contribution of rank {}", missing));
      }
    }
    return {};
  }

  static Status lacks(int rank, int chunk, const std::string& what) {
    return Status::error(Code::kPlanCoverage, "output chunk {} of rank {} {}", chunk, rank, what);
  }

  const Plan& plan_;
  const PlanIndex& index_;
  const uint32_t passes_;
  const Memory& memory_;
  const ValueWatcher* separate_;
  ValueTable table_;
  std::vector<uint32_t> first_single_;  // per rank
  std::vector<Content> contents_;
  std::vector<uint64_t> set_;
  Values found_;
};

}  // namespace

std::unique_ptr<ValueWatcher> value_check(const Plan& plan, const PlanIndex& index,
                                          const Memory& memory, const ValueWatcher* separate) {
  return std::make_unique<ValueCheck>(plan, index, memory, separate);
}

}  // namespace tessera::verifier
