#include <iterator>

#include "plan/printer.h"

namespace tessera {
namespace {

template <class... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

std::string operand(const Ref& ref, int chunks, int rank) {
  std::string text = fmt::format("{}[{}", to_string(ref.buffer), ref.chunk);
  if (chunks > 1) put(text, "..{}", ref.chunk + chunks - 1);
  text += ']';
  if (ref.rank != rank) put(text, "@{}", ref.rank);
  return text;
}

std::string operands(const std::vector<Ref>& refs, int chunks, int rank, const char* separator) {
  std::string text;
  for (const Ref& ref : refs) {
    if (!text.empty()) text += separator;
    text += operand(ref, chunks, rank);
  }
  return text;
}

std::string line(const Step& step, size_t number, int rank) {
  std::string text = fmt::format("  {:>4}  {:<10}", number, step_name(step, rank));
  if (step.op != Op::kSync) {
    put(text, "  {} -> {}", operands(step.srcs, step.chunks, rank, " + "),
        operands(step.dsts, step.chunks, rank, ", "));
  }
  for (const Wait& wait : step.waits) {
    put(text, "  wait c{}>={}", wait.counter, wait.increment);
    if (wait.lag > 0) put(text, " of pass -{}", wait.lag);
  }
  for (const Signal& signal : step.signals) {
    put(text, "  signal c{}+{}", signal.counter, signal.increment);
    if (signal.rank != rank) put(text, "@{}", signal.rank);
  }
  if (step.completes) text += "  completes";
  return text + '\n';
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out = fmt::format("plan \"{}\": {} over {} rank(s)", plan.name,
                                to_string(plan.collective), plan.ranks);
  if (has_root(plan.collective)) put(out, ", root {}", plan.root);
  put(out, ", {} chunk(s) per block, scratch depth {}\n", plan.chunks_per_block,
      plan.scratch_depth);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const RankProgram& program = plan.programs[static_cast<size_t>(rank)];
    put(out, "rank {}: {} scratch chunk(s), {} counter(s)", rank, program.scratch_chunks,
        program.counters.size());
    for (size_t c = 0; c < program.counters.size(); ++c) {
      if (program.counters[c].kind == CounterKind::kStep) continue;
      put(out, ", c{} external with {} arrival(s)", c, program.counters[c].arrivals);
    }
    out += '\n';
    for (size_t lane = 0; lane < program.lanes.size(); ++lane) {
      put(out, " lane {}\n", lane);
      const std::vector<Step>& steps = program.lanes[lane].steps;
      for (size_t s = 0; s < steps.size(); ++s) out += line(steps[s], s, rank);
    }
  }
  return out;
}

}  // namespace tessera
