#include "comm/program_run.h"

#include <fmt/format.h>

namespace tessera {

Slices slices_of(const Program& program, size_t count, uint32_t element_bytes) {
  const size_t slot_elements = (program.slot_stride - sizeof(SlotHeader)) / element_bytes;
  const size_t elements = slot_elements == 0 ? count : slot_elements * program.chunks_per_block;
  if (elements >= count) return {elements, 1};  // no division when small
  return {elements, static_cast<uint32_t>((count + elements - 1) / elements)};
}

void ProgramRun::start(const Program& program, const Run<HostSpace>& run) {
  program_ = &program;
  view_ = program.view();
  run_ = run;
  cursors_.assign(program.lanes.size(), {});
  done_.assign(program.lanes.size(), false);
}

void ProgramRun::restart(uint64_t first_pass, uint64_t fingerprint) {
  run_.first_pass = first_pass;
  run_.fingerprint = fingerprint;
  for (LaneCursor& cursor : cursors_) cursor = {};
  done_.assign(done_.size(), false);
}

Progress ProgramRun::advance(HostSpace& space, int spins) {
  Interpreter<HostSpace> interpreter(view_, run_, space);
  if (view_.num_lanes == 1) return interpreter.advance(0, cursors_[0], spins);
  bool all = true;
  for (uint32_t lane = 0; lane < view_.num_lanes; ++lane) {
    if (done_[lane]) continue;
    const Progress progress = interpreter.advance(lane, cursors_[lane], 0);
    if (progress == Progress::kMismatch || progress == Progress::kFailed) return progress;
    done_[lane] = progress == Progress::kDone;
    all = all && done_[lane];
  }
  return all ? Progress::kDone : Progress::kBlocked;
}

uint64_t ProgramRun::moved() const {
  uint64_t moved = 0;
  for (const LaneCursor& cursor : cursors_) moved += (uint64_t{cursor.moved} << 16) + cursor.wait;
  return moved;
}

std::string ProgramRun::blocked(HostSpace& space, const std::vector<int>& names) const {
  const Interpreter<HostSpace> interpreter(view_, run_, space);
  for (size_t lane = 0; lane < cursors_.size(); ++lane) {
    const LaneCursor& at = cursors_[lane];
    const LaneCode& code = view_.lanes[lane];
    if (done_[lane] || at.slice >= run_.passes || at.step >= code.steps) continue;
    const StepCode& step = view_.steps[code.first_step + at.step];
    if (at.wait >= step.waits) continue;
    const WaitCode& wait = view_.waits[step.first_wait + at.wait];
    uint64_t target = 0;
    const Counter& counter = interpreter.waited(wait, at.slice, target);
    return fmt::format("step {} of {}, slice {} of {}, waits for rank {} ({} {} at {}, needs {})",
                       at.step + 1, code.steps, at.slice + 1, run_.passes, names[wait.from],
                       wait.embedded ? "slot" : "counter", wait.counter, counter.value(), target);
  }
  return "no step waits";
}

}  // namespace tessera
