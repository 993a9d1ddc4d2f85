#include "fusion/fused_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

Call as_call(const FusedDescription& d) {
  Call call;
  call.collective = d.collective;
  call.type = d.type;
  call.op = d.op;
  return call;
}

}  // namespace

FusedRun::FusedRun(Core& core, LinkedPlan& plan, const FusedDescription& description,
                   const Geometry& geometry, Onto* onto)
    : core_(core),
      plan_(plan),
      geometry_(geometry),
      onto_(onto),
      description_(description),
      view_(plan.program.view()),
      space_(description, geometry.largest_chunk_rows(), plan.program.max_operands, onto),
      reduction_(core.ranks),
      inputs_(static_cast<size_t>(core.ranks)),
      outputs_(static_cast<size_t>(core.ranks)),
      cursors_(view_.num_lanes) {
  set_lines(description);
  inputs_[core.rank] = {&input_, 0};
  outputs_[core.rank] = {&output_, 0};
  if (onto != nullptr) outputs_[1 - core.rank] = {&onto->output(1 - core.rank), 0};
  space_.bind(core.ways.data(), core.ports != nullptr,
              reduction_.prepare(as_call(description), core.ranks));
  open_.reserve(view_.num_lanes);
}

void FusedRun::set_lines(const FusedDescription& description) {
  const size_t element = size_of(description.type);
  input_ = {nullptr, static_cast<size_t>(description.input_ld) * element, geometry_.input_rows()};
  output_ = {nullptr, static_cast<size_t>(description.output_ld) * element,
             geometry_.output_rows()};
}

void FusedRun::start(const void* input, void* output) {
  input_.base = static_cast<std::byte*>(const_cast<void*>(input));
  output_.base = static_cast<std::byte*>(output);
  if (onto_ != nullptr) onto_->begin(output_);
  const uint64_t pass = plan_.next_pass++;
  const auto rows = static_cast<size_t>(geometry_.plan_block_rows());
  run_ = {plan_.regions.data(),
          inputs_.data(),
          outputs_.data(),
          plan_.seen.data(),
          pass,
          digest(description_) + pass,
          rows,
          rows,
          1,
          static_cast<uint32_t>(description_.row_bytes())};
  std::fill(cursors_.begin(), cursors_.end(), LaneCursor{});
  open_.resize(view_.num_lanes);
  std::iota(open_.begin(), open_.end(), 0u);
  running_ = true;
}

Progress FusedRun::advance() {
  if (!running_) return Progress::kDone;
  Interpreter<MatrixSpace> interpreter(view_, run_, space_);
  size_t kept = 0;
  for (size_t i = 0; i < open_.size(); ++i) {
    LaneCursor& at = cursors_[open_[i]];
    const uint64_t before = (uint64_t{at.moved} << 16) + at.wait;
    const Progress progress = interpreter.advance(open_[i], at, 0);
    if (progress == Progress::kMismatch || progress == Progress::kFailed) return progress;
    moved_ += (uint64_t{at.moved} << 16) + at.wait != before ? 1 : 0;
    if (progress == Progress::kBlocked) open_[kept++] = open_[i];
  }
  open_.resize(kept);
  // What is still to leave for other hosts leaves only while somebody drives.
  running_ = kept > 0 || (core_.ports && !core_.ports->flushed());
  return running_ ? Progress::kBlocked : Progress::kDone;
}

std::string FusedRun::blocked(int tile_counters) {
  if (!running_) return "no launch is under way";
  Interpreter<MatrixSpace> interpreter(view_, run_, space_);
  std::string part;
  for (const uint32_t lane : open_) {
    const LaneCursor& at = cursors_[lane];
    const StepCode& step = view_.steps[view_.lanes[lane].first_step + at.step];
    if (at.slice > 0 || at.wait >= step.waits) continue;
    const WaitCode& wait = view_.waits[step.first_wait + at.wait];
    if (!wait.embedded && wait.counter < static_cast<uint32_t>(tile_counters)) continue;
    uint64_t target = 0;
    if (interpreter.waited(wait, 0, target).reached(target)) continue;
    if (wait.from == core_.rank) continue;  // another step here is to raise it
    const int landing = static_cast<int>(wait.counter) - tile_counters;
    if (onto_ != nullptr && step.op == static_cast<uint8_t>(Op::kSync) &&
        landing < geometry_.plan_chunks()) {
      const RowRange rows = geometry_.output().rows_of(landing);
      return fmt::format("rows {} to {} of the output wait for tiles of rank {}", rows.begin,
                         rows.end - 1, wait.from);
    }
    for (uint32_t i = 0; i < uint32_t{step.dsts} + step.srcs; ++i) {
      const OperandCode& operand = view_.operands[step.first_operand + i];
      if (operand.buffer == static_cast<uint8_t>(Buffer::kScratch)) continue;
      if (operand.rank != core_.rank) continue;
      const bool input = operand.buffer == static_cast<uint8_t>(Buffer::kInput);
      const RowRange rows =
          (input ? geometry_.input() : geometry_.output()).rows_of(static_cast<int>(operand.chunk));
      return fmt::format("rows {} to {} of the {} wait for rank {}", rows.begin, rows.end - 1,
                         input ? "input" : "output", wait.from);
    }
    if (step.op != static_cast<uint8_t>(Op::kSync))
      part = fmt::format("a part of a sum waits for rank {}", wait.from);
  }
  return part.empty() ? "no step waits for a peer" : part;
}

}  // namespace tessera
