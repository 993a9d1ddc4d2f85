// Form: every number of the plan is in range and every ref is one that the collective's shape
// allows.
#include <algorithm>
#include <tuple>
#include <vector>

#include "plan/limits.h"
#include "plan/shape.h"
#include "plan/verifier_internal.h"

namespace tessera::verifier {
namespace {

template <class... Args>
Status invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kPlanInvalid, fmt::format(format, std::forward<Args>(args)...));
}

// Whether two of the elements agree in what `key` returns.
template <class T, class Key>
bool has_duplicate(const std::vector<T>& elements, Key key) {
  if (elements.size() < 2) return false;
  std::vector<decltype(key(elements[0]))> keys;
  keys.reserve(elements.size());
  for (const T& element : elements) keys.push_back(key(element));
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

class FormCheck {
 public:
  explicit FormCheck(const Plan& plan) : plan_(plan) {}

  Status run() {
    if (Status status = head(); !status.ok()) return status;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (Status status = program(rank); !status.ok()) return status;
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (Status status = steps(rank); !status.ok()) return status;
    }
    return {};
  }

 private:
  Status head() const {
    if (!is_plan_name(plan_.name)) {
      return invalid("the plan's name is not one of at most {} printable ASCII characters",
                     kMaxNameBytes);
    }
    if (static_cast<int>(plan_.collective) >= kCollectives) {
      return invalid("unknown collective {}", static_cast<int>(plan_.collective));
    }
    if (plan_.ranks < 1 || plan_.ranks > kMaxRanks) {
      return invalid("{} ranks are out of range 1..{}", plan_.ranks, kMaxRanks);
    }
    if (plan_.collective == Collective::kSendRecv && plan_.ranks != 2) {
      return invalid("send-recv has 2 ranks, not {}", plan_.ranks);
    }
    if (has_root(plan_.collective) && (plan_.root < 0 || plan_.root >= plan_.ranks)) {
      return invalid("root {} is out of range 0..{}", plan_.root, plan_.ranks - 1);
    }
    if (!has_root(plan_.collective) && plan_.root != -1) {
      return invalid("root {} is given, but {} has no root", plan_.root,
                     to_string(plan_.collective));
    }
    if (plan_.chunks_per_block < 1 || plan_.chunks_per_block > kMaxChunksPerBlock) {
      return invalid("{} chunks per block are out of range 1..{}", plan_.chunks_per_block,
                     kMaxChunksPerBlock);
    }
    if (plan_.scratch_depth < 1 || plan_.scratch_depth > kMaxScratchDepth) {
      return invalid("scratch depth {} is out of range 1..{}", plan_.scratch_depth,
                     kMaxScratchDepth);
    }
    if (plan_.programs.size() != static_cast<size_t>(plan_.ranks)) {
      return invalid("{} programs for {} ranks", plan_.programs.size(), plan_.ranks);
    }
    return {};
  }

  Status program(int rank) const {
    const RankProgram& program = plan_.programs[static_cast<size_t>(rank)];
    if (program.lanes.size() > static_cast<size_t>(kMaxLanes)) {
      return invalid("rank {} has {} lanes; {} are allowed", rank, program.lanes.size(), kMaxLanes);
    }
    if (program.counters.size() > static_cast<size_t>(kMaxCounters)) {
      return invalid("rank {} has {} counters; {} are allowed", rank, program.counters.size(),
                     kMaxCounters);
    }
    if (program.scratch_chunks < 0 || program.scratch_chunks > kMaxScratchChunks) {
      return invalid("rank {} has {} scratch chunks, out of range 0..{}", rank,
                     program.scratch_chunks, kMaxScratchChunks);
    }
    for (size_t c = 0; c < program.counters.size(); ++c) {
      const CounterInfo& counter = program.counters[c];
      const bool external = counter.kind == CounterKind::kExternal;
      if (external ? counter.arrivals < 1 || counter.arrivals > kMaxIncrement
                   : counter.arrivals != 0) {
        return invalid("counter {} of rank {} has {} arrivals; {}", c, rank, counter.arrivals,
                       external ? "an external counter has at least 1 and at most 2^24"
                                : "a step counter has none");
      }
    }
    return {};
  }

  Status steps(int rank) {
    const RankProgram& program = plan_.programs[static_cast<size_t>(rank)];
    for (size_t lane = 0; lane < program.lanes.size(); ++lane) {
      const std::vector<Step>& steps = program.lanes[lane].steps;
      if (steps.size() > static_cast<size_t>(kMaxSteps)) {
        return invalid("rank {} lane {} has {} steps; {} are allowed", rank, lane, steps.size(),
                       kMaxSteps);
      }
      for (size_t s = 0; s < steps.size(); ++s) {
        if (Status status = step(rank, steps[s]); !status.ok()) {
          return invalid("rank {} lane {} step {} ({}): {}", rank, lane, s,
                         step_name(steps[s], rank), status.message());
        }
      }
    }
    return {};
  }

  Status step(int rank, const Step& step) const {
    const auto cap = static_cast<size_t>(kMaxOperands);
    if (step.dsts.size() > cap || step.srcs.size() > cap || step.waits.size() > cap ||
        step.signals.size() > cap) {
      return invalid("more than {} operands, waits or signals", kMaxOperands);
    }
    if (Status status = operands(rank, step); !status.ok()) return status;
    for (const Wait& wait : step.waits) {
      if (Status status = this->wait(rank, wait); !status.ok()) return status;
    }
    if (has_duplicate(step.waits, [](const Wait& wait) { return wait.counter; })) {
      return invalid("it waits for one counter twice");
    }
    for (const Signal& signal : step.signals) {
      if (Status status = this->signal(signal); !status.ok()) return status;
    }
    if (has_duplicate(step.signals,
                      [](const Signal& s) { return std::tuple(s.rank, s.counter); })) {
      return invalid("it signals one counter twice");
    }
    return {};
  }

  Status operands(int rank, const Step& step) const {
    const size_t dsts = step.dsts.size();
    const size_t srcs = step.srcs.size();
    switch (step.op) {
      case Op::kSync:
        if (dsts + srcs != 0) return invalid("it moves no data but names {} operands", dsts + srcs);
        if (step.chunk != 0 || step.chunks != 1)
          return invalid("it moves no data but names chunks");
        return {};
      case Op::kCopy:
        if (srcs != 1 || dsts < 1) {
          return invalid("a copy has 1 source and a destination, not {} and {}", srcs, dsts);
        }
        break;
      case Op::kReduce:
        if (srcs < 1 || dsts < 1) {
          return invalid("a reduce has sources and a destination, not {} and {}", srcs, dsts);
        }
        if (!reduces(plan_.collective)) {
          return invalid("{} does not reduce", to_string(plan_.collective));
        }
        break;
      case Op::kAccumulate:
        if (srcs != 1 || dsts != 1) {
          return invalid("an accumulation has 1 source and 1 destination, not {} and {}", srcs,
                         dsts);
        }
        if (!reduces(plan_.collective)) {
          return invalid("{} does not reduce", to_string(plan_.collective));
        }
        break;
      default:
        return invalid("unknown operation {}", static_cast<int>(step.op));
    }
    if (step.chunk < 0 || step.chunk >= plan_.chunks_per_block) {
      return invalid("chunk {} is out of range 0..{}", step.chunk, plan_.chunks_per_block - 1);
    }
    if (step.chunks < 1) return invalid("a run of {} chunks", step.chunks);
    for (const Ref& ref : step.srcs) {
      if (Status status = this->ref(rank, step, ref); !status.ok()) return status;
    }
    for (const Ref& ref : step.dsts) {
      if (ref.buffer == Buffer::kInput) {
        return invalid("it writes {}; the input is never written", describe(ref, 0, rank));
      }
      if (Status status = this->ref(rank, step, ref); !status.ok()) return status;
    }
    return overlaps(rank, step);
  }

  int size_of_buffer(const Ref& ref) const {
    switch (ref.buffer) {
      case Buffer::kInput:
        return input_blocks(plan_.collective, plan_.ranks, plan_.root, ref.rank) *
               plan_.chunks_per_block;
      case Buffer::kOutput:
        return output_blocks(plan_.collective, plan_.ranks, plan_.root, ref.rank) *
               plan_.chunks_per_block;
      case Buffer::kScratch:
        return plan_.programs[static_cast<size_t>(ref.rank)].scratch_chunks;
    }
    return 0;
  }

  Status ref(int rank, const Step& step, const Ref& ref) const {
    if (ref.rank < 0 || ref.rank >= plan_.ranks) {
      return invalid("rank {} is out of range 0..{}", ref.rank, plan_.ranks - 1);
    }
    if (ref.buffer > Buffer::kScratch) {
      return invalid("unknown buffer {}", static_cast<int>(ref.buffer));
    }
    const int size = size_of_buffer(ref);
    if (size == 0) {
      return invalid("rank {} has no {} in {}", ref.rank, to_string(ref.buffer),
                     to_string(plan_.collective));
    }
    if (ref.chunk < 0 || ref.chunk >= size || step.chunks > size - ref.chunk) {
      return invalid("{} (run of {}) is out of range 0..{}", describe(ref, 0, rank), step.chunks,
                     size - 1);
    }
    if (ref.buffer != Buffer::kScratch && ref.chunk % plan_.chunks_per_block != step.chunk) {
      return invalid("{} is chunk {} of its block, but the step moves chunk {}",
                     describe(ref, 0, rank), ref.chunk % plan_.chunks_per_block, step.chunk);
    }
    return {};
  }

  // Destinations may not overlap each other, nor a source unless they are the same run.
  static Status overlaps(int rank, const Step& step) {
    for (size_t d = 0; d < step.dsts.size(); ++d) {
      const Ref& dst = step.dsts[d];
      const auto overlap = [&](const Ref& other) {
        return other.rank == dst.rank && other.buffer == dst.buffer &&
               other.chunk < dst.chunk + step.chunks && dst.chunk < other.chunk + step.chunks;
      };
      for (size_t e = 0; e < d; ++e) {
        if (overlap(step.dsts[e])) return invalid("it writes {} twice", describe(dst, 0, rank));
      }
      for (const Ref& src : step.srcs) {
        if (overlap(src) && src.chunk != dst.chunk) {
          return invalid("{} and {} overlap", describe(src, 0, rank), describe(dst, 0, rank));
        }
      }
    }
    return {};
  }

  Status wait(int rank, const Wait& wait) const {
    const size_t counters = plan_.programs[static_cast<size_t>(rank)].counters.size();
    if (wait.counter < 0 || static_cast<size_t>(wait.counter) >= counters) {
      return invalid("it waits for counter {}, but rank {} has {} counters", wait.counter, rank,
                     counters);
    }
    if (wait.increment < 1 || wait.increment > kMaxIncrement) {
      return invalid("a wait's increment {} is out of range 1..{}", wait.increment, kMaxIncrement);
    }
    if (wait.lag > kMaxLag) return invalid("lag {} is out of range 0..{}", wait.lag, kMaxLag);
    return {};
  }

  Status signal(const Signal& signal) const {
    if (signal.rank < 0 || signal.rank >= plan_.ranks) {
      return invalid("it signals rank {}, out of range 0..{}", signal.rank, plan_.ranks - 1);
    }
    const auto& counters = plan_.programs[static_cast<size_t>(signal.rank)].counters;
    if (signal.counter < 0 || static_cast<size_t>(signal.counter) >= counters.size()) {
      return invalid("it signals counter {}, but rank {} has {} counters", signal.counter,
                     signal.rank, counters.size());
    }
    if (signal.increment < 1 || signal.increment > kMaxIncrement) {
      return invalid("a signal's increment {} is out of range 1..{}", signal.increment,
                     kMaxIncrement);
    }
    if (counters[static_cast<size_t>(signal.counter)].kind == CounterKind::kExternal) {
      return invalid("it signals counter {} of rank {}, which is external", signal.counter,
                     signal.rank);
    }
    return {};
  }

  const Plan& plan_;
};

}  // namespace

std::string describe(const Ref& ref, int offset, int rank) {
  std::string text = fmt::format("{} chunk {}", to_string(ref.buffer), ref.chunk + offset);
  if (ref.rank != rank) text += fmt::format(" of rank {}", ref.rank);
  return text;
}

Status check_form(const Plan& plan) { return FormCheck(plan).run(); }

}  // namespace tessera::verifier
