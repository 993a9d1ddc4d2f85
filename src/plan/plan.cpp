#include "plan/plan.h"

#include <algorithm>

namespace tessera {
namespace {

bool any_remote(const std::vector<Ref>& refs, int rank) {
  return std::any_of(refs.begin(), refs.end(), [rank](const Ref& ref) { return ref.rank != rank; });
}

}  // namespace

const char* step_name(const Step& step, int rank) {
  if (step.op == Op::kSync) {
    if (step.signals.empty() && !step.waits.empty()) return "wait";
    if (step.waits.empty() && !step.signals.empty()) return "signal";
    return "sync";
  }
  if (step.op == Op::kAccumulate) return "accumulate";
  const bool reduces = step.op == Op::kReduce;
  if (any_remote(step.dsts, rank)) return reduces ? "put-reduce" : "put";
  if (any_remote(step.srcs, rank)) return reduces ? "get-reduce" : "get";
  return reduces ? "reduce" : "copy";
}

const char* to_string(Buffer buffer) {
  switch (buffer) {
    case Buffer::kInput:
      return "input";
    case Buffer::kOutput:
      return "output";
    case Buffer::kScratch:
      return "scratch";
  }
  return "unknown buffer";
}

}  // namespace tessera
