#include "simulator/source.h"

#include <algorithm>
#include <utility>

#include "plan/limits.h"
#include "plan/shape.h"

namespace tessera::simulator {
namespace {

constexpr uint32_t kShown = 4;  // peers and signals in a description

class Decoder {
 public:
  Decoder(const Plan& plan, size_t programs, PlanCode& code)
      : plan_(plan), programs_(programs), code_(code) {}

  Status decode() {
    if (Status status = sum_signals(); !status.ok()) return status;
    code_.chunks_per_block = static_cast<uint32_t>(plan_.chunks_per_block);
    if (plan_.chunks_per_block % plan_.ranks == 0)
      code_.chunk_shift = static_cast<uint32_t>(plan_.chunks_per_block / plan_.ranks);
    for (size_t rank = 0; rank < programs_; ++rank) {
      if (Status status = program(static_cast<int>(rank)); !status.ok()) return status;
    }
    return {};
  }

 private:
  bool whole() const { return programs_ == static_cast<size_t>(plan_.ranks); }
  // Whose counters a signal to `rank` raises; in a plan of rank 0 alone, every rank's are alike.
  size_t owner(int rank) const { return whole() ? static_cast<size_t>(rank) : 0; }

  template <class... Args>
  static Status bad(fmt::format_string<Args...> format, Args&&... args) {
    return Status::error(Code::kPlanInvalid, "{}",
                         fmt::format(format, std::forward<Args>(args)...));
  }

  Status sum_signals() {
    per_pass_.resize(programs_);
    for (size_t rank = 0; rank < programs_; ++rank) {
      for (const CounterInfo& counter : plan_.programs[rank].counters)
        per_pass_[rank].push_back(counter.arrivals);
    }
    for (size_t rank = 0; rank < programs_; ++rank) {
      for (const Lane& lane : plan_.programs[rank].lanes) {
        for (const Step& step : lane.steps) {
          for (const Signal& signal : step.signals) {
            if (signal.rank < 0 || signal.rank >= plan_.ranks || signal.counter < 0 ||
                static_cast<size_t>(signal.counter) >= per_pass_[owner(signal.rank)].size()) {
              return bad("rank {} raises counter {} of rank {}, which does not exist", rank,
                         signal.counter, signal.rank);
            }
            per_pass_[owner(signal.rank)][static_cast<size_t>(signal.counter)] += signal.increment;
          }
        }
      }
    }
    return {};
  }

  Status program(int rank) {
    const RankProgram& program = plan_.programs[static_cast<size_t>(rank)];
    ProgramCode out{};
    out.first_lane = static_cast<uint32_t>(code_.lanes.size());
    out.lanes = static_cast<uint32_t>(program.lanes.size());
    out.first_external = static_cast<uint32_t>(code_.externals.size());
    out.counters = static_cast<uint32_t>(program.counters.size());
    for (uint32_t c = 0; c < out.counters; ++c) {
      if (program.counters[c].kind == CounterKind::kExternal)
        code_.externals.push_back({c, program.counters[c].arrivals});
    }
    out.externals = static_cast<uint32_t>(code_.externals.size()) - out.first_external;
    for (const Lane& lane : program.lanes) {
      code_.lanes.push_back(
          {static_cast<uint32_t>(code_.steps.size()), static_cast<uint32_t>(lane.steps.size())});
      for (const Step& s : lane.steps) {
        if (Status status = step(s, rank); !status.ok()) return status;
      }
    }
    code_.programs.push_back(out);
    return {};
  }

  Status step(const Step& step, int rank) {
    for (const auto* refs : {&step.dsts, &step.srcs}) {
      for (const Ref& ref : *refs) {
        if (ref.rank < 0 || ref.rank >= plan_.ranks)
          return bad("rank {} names rank {} of {} ranks", rank, ref.rank, plan_.ranks);
      }
    }
    if (step.chunk < 0 || step.chunk >= plan_.chunks_per_block || step.chunks < 1 ||
        step.chunks > kMaxScratchChunks)
      return bad("rank {} moves {} chunks from chunk {} on", rank, step.chunks, step.chunk);
    if (step.op != Op::kSync && step.srcs.empty()) return bad("rank {} moves nothing", rank);
    for (const size_t size :
         {step.dsts.size(), step.srcs.size(), step.waits.size(), step.signals.size()}) {
      if (size > static_cast<size_t>(kMaxOperands))
        return bad("a step of rank {} has {} operands, waits or signals", rank, size);
    }
    StepCode out{};
    out.first_wait = static_cast<uint32_t>(code_.waits.size());
    out.first_signal = static_cast<uint32_t>(code_.signals.size());
    out.first_peer = static_cast<uint32_t>(code_.peers.size());
    out.chunk = static_cast<uint32_t>(step.chunk);
    out.chunks = static_cast<uint32_t>(step.chunks);
    out.name = step_name(step, rank);
    if (step.op != Op::kSync) operands(step, rank, out);
    for (const Signal& signal : step.signals) {
      code_.signals.push_back({static_cast<uint32_t>(signal.rank),
                               static_cast<uint32_t>(signal.counter), signal.increment});
    }
    out.signals = static_cast<uint16_t>(step.signals.size());
    if (Status status = waits(step, rank, out); !status.ok()) return status;
    code_.steps.push_back(out);
    return {};
  }

  void operands(const Step& step, int rank, StepCode& out) {
    uint16_t local = 0;
    for (const Ref& dst : step.dsts) {
      if (dst.rank != rank) {
        code_.peers.push_back(static_cast<uint32_t>(dst.rank));
        ++out.puts;
      } else if (step.srcs.size() == 1 && step.srcs[0].rank == rank && !(dst == step.srcs[0])) {
        ++local;  // a sum's own destination is written along with the sum
      }
    }
    for (const Ref& src : step.srcs) {
      if (src.rank == rank) continue;
      code_.peers.push_back(static_cast<uint32_t>(src.rank));
      ++out.gets;
    }
    const bool adds = step.op == Op::kAccumulate;
    out.copies = adds ? 0 : local;
    out.combines = adds ? 1 : static_cast<uint16_t>(step.srcs.size() - 1);
  }

  Status waits(const Step& step, int rank, StepCode& out) {
    const std::vector<uint64_t>& sums = per_pass_[static_cast<size_t>(rank)];
    for (const Wait& wait : step.waits) {
      if (wait.counter < 0 || static_cast<size_t>(wait.counter) >= sums.size())
        return bad("rank {} waits for its counter {}, which does not exist", rank, wait.counter);
      code_.waits.push_back({static_cast<uint32_t>(wait.counter), wait.increment, wait.lag,
                             sums[static_cast<size_t>(wait.counter)]});
    }
    out.waits = static_cast<uint16_t>(step.waits.size());
    return {};
  }

  const Plan& plan_;
  const size_t programs_;
  PlanCode& code_;
  std::vector<std::vector<uint64_t>> per_pass_;  // by rank and counter
};

int turned(int value, int by, int size) { return (value + by) % size; }

Ref turned(Ref ref, const Plan& plan, int rank) {
  const int n = plan.ranks, c = plan.chunks_per_block;
  if (ref.buffer != Buffer::kScratch) {
    const int blocks = ref.buffer == Buffer::kInput
                           ? input_blocks(plan.collective, n, plan.root, ref.rank)
                           : output_blocks(plan.collective, n, plan.root, ref.rank);
    int block = ref.chunk / c, chunk = ref.chunk % c;
    if (blocks == n) block = turned(block, rank, n);
    if (c % n == 0) chunk = turned(chunk, rank * (c / n), c);
    ref.chunk = block * c + chunk;
  }
  ref.rank = turned(ref.rank, rank, n);
  return ref;
}

}  // namespace

Result<Source> Source::decoded(const Plan& plan, size_t programs) {
  if (plan.ranks < 1 || plan.ranks > kMaxRanks || plan.chunks_per_block < 1 ||
      plan.chunks_per_block > kMaxChunksPerBlock ||
      plan.programs.size() != static_cast<size_t>(plan.ranks)) {
    return Status::error(Code::kPlanInvalid,
                         "plan \"{}\" has {} programs for {} ranks and {} chunks in a block",
                         plan.name, plan.programs.size(), plan.ranks, plan.chunks_per_block);
  }
  Source source;
  source.name_ = plan.name;
  source.ranks_ = plan.ranks;
  if (Status status = Decoder(plan, programs, source.code_).decode(); !status.ok()) {
    return Status::error(status.code(), "plan \"{}\": {}", plan.name, status.message());
  }
  return source;
}

Result<Source> Source::of(const Plan& plan) { return decoded(plan, plan.programs.size()); }

Result<Source> Source::of(const Algorithm& algorithm, AlgorithmParams params) {
  if (params.ranks < 1 || params.ranks > kMaxRanks ||
      !algorithm.supports(params.ranks, count_hosts(params.host_of))) {
    return Status::error(Code::kInvalidArgument, "{} {} has no plan for {} ranks{}", algorithm.name,
                         to_string(algorithm.collective), params.ranks,
                         algorithm.across_hosts ? " unless they are on several hosts" : "");
  }
  params.first_only = algorithm.rotates;
  const Plan plan = algorithm.build(params);
  return decoded(plan, algorithm.rotates ? 1 : plan.programs.size());
}

uint64_t Source::steps_per_pass() const {
  return code_.steps.size() * (compact() ? static_cast<uint64_t>(ranks_) : 1);
}

std::string Source::describe(int rank, int lane, uint32_t step) const {
  const auto self = static_cast<uint32_t>(rank);
  const StepCode& code = this->step(rank, lane, step);
  std::string text = code.name;
  if (code.puts + code.gets + code.copies + code.combines > 0)
    text += fmt::format(" chunk {}", turned_chunk(code.chunk, self));
  if (code.chunks > 1) text += fmt::format(" and {} more", code.chunks - 1);
  const uint32_t peers = uint32_t{code.puts} + code.gets;
  for (uint32_t i = 0; i < std::min(peers, kShown); ++i) {
    const char* word = i == 0 && code.puts > 0 ? " to rank" : i == code.puts ? " from rank" : ",";
    text += fmt::format("{} {}", word, turned_rank(code_.peers[code.first_peer + i], self));
  }
  if (peers > kShown) text += fmt::format(" and {} more", peers - kShown);
  for (uint32_t i = 0; i < std::min<uint32_t>(code.signals, kShown); ++i) {
    const SignalCode& signal = code_.signals[code.first_signal + i];
    text += fmt::format(", raise counter {} of rank {}", signal.counter,
                        turned_rank(signal.rank, self));
  }
  if (code.signals > kShown) text += fmt::format(" and {} more", code.signals - kShown);
  return text;
}

Plan rotated(const Plan& first) {
  Plan plan = first;
  for (int rank = 1; rank < plan.ranks; ++rank) {
    RankProgram program = first.programs[0];
    for (Lane& lane : program.lanes) {
      for (Step& step : lane.steps) {
        if (plan.chunks_per_block % plan.ranks == 0)
          step.chunk = turned(step.chunk, rank * (plan.chunks_per_block / plan.ranks),
                              plan.chunks_per_block);
        for (Ref& ref : step.dsts) ref = turned(ref, plan, rank);
        for (Ref& ref : step.srcs) ref = turned(ref, plan, rank);
        for (Signal& signal : step.signals) signal.rank = turned(signal.rank, rank, plan.ranks);
      }
    }
    plan.programs[static_cast<size_t>(rank)] = std::move(program);
  }
  return plan;
}

}  // namespace tessera::simulator
