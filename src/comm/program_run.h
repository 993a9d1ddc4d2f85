// One epoch of a linked program on the host: the interpreter and the cursors of all lanes.
// Thread safety: one thread at a time. start() and advance() do not allocate once as many lanes
// were seen.
#pragma once

#include <string>
#include <vector>

#include "exec/host_space.h"
#include "exec/interpreter.h"
#include "exec/program.h"

namespace tessera {

// How a block of `count` elements is cut: so that no chunk of a slice exceeds a slot. Programs without
// slots (direct plans) move it in one pass.
struct Slices {
  size_t elements;
  uint32_t passes;
};
Slices slices_of(const Program& program, size_t count, uint32_t element_bytes);

class ProgramRun {
 public:
  // `run` and what it points to must live until the run is done.
  void start(const Program& program, const Run<HostSpace>& run);

  // The same run once more, from another pass on and for another call.
  void restart(uint64_t first_pass, uint64_t fingerprint);

  // Lets every lane go on until it blocks.
  Progress advance(HostSpace& space, int spins);

  uint32_t passes() const { return run_.passes; }

  // Grows with every step done: tells progress from standstill.
  uint64_t moved() const;

  // A sentence about the first blocked lane's wait:
  // "step 3 of 5, slice 0 of 2, waits for rank 1 (counter at 4, needs 5)". Ranks are named by
  // `names` (member -> rank).
  std::string blocked(HostSpace& space, const std::vector<int>& names) const;

  // True if a lane waits, now or later in its pass, for a signal of a member of which `pred` is
  // true.
  template <class Pred>
  bool awaits(HostSpace& space, const Pred& pred) const {
    const Interpreter<HostSpace> interpreter(view_, run_, space);
    for (uint32_t lane = 0; lane < view_.num_lanes; ++lane) {
      const LaneCursor& at = cursors_[lane];
      const LaneCode& code = view_.lanes[lane];
      if (at.slice >= run_.passes || at.step >= code.steps) continue;
      const StepCode& now = view_.steps[code.first_step + at.step];
      const StepCode& last = view_.steps[code.first_step + code.steps - 1];
      const uint32_t end = last.first_wait + last.waits;
      for (uint32_t i = now.first_wait + at.wait; i < end; ++i) {
        const WaitCode& wait = view_.waits[i];
        if (!pred(wait.from)) continue;
        uint64_t target = 0;
        const Counter& counter = interpreter.waited(wait, at.slice, target);
        if (!counter.reached(target)) return true;
      }
    }
    return false;
  }

 private:
  const Program* program_ = nullptr;
  ProgramView view_{};
  Run<HostSpace> run_{};
  std::vector<LaneCursor> cursors_;
  std::vector<bool> done_;
};

}  // namespace tessera
