// One rank's launches of a linked, tile-triggered plan: a state machine that never blocks. Each
// launch is one pass of the plan; counters are not reset between them, their targets follow from the
// number of the pass (I3).
//
// Thread safety: one thread at a time. start() and advance() allocate nothing.
#pragma once

#include <string>
#include <vector>

#include "comm/plan_store.h"
#include "comm/reduction.h"
#include "fusion/geometry.h"
#include "fusion/matrix_space.h"
#include "fusion/onto.h"

namespace tessera {

class FusedRun {
 public:
  FusedRun(Core& core, LinkedPlan& plan, const FusedDescription& description,
           const Geometry& geometry, Onto* onto);

  // Takes over leading dimensions; between launches.
  void set_lines(const FusedDescription& description);
  // Begins a launch; the one before is done.
  void start(const void* input, void* output);
  bool running() const { return running_; }
  // Ends a launch that failed.
  void abandon() { running_ = false; }

  // Lets every lane go on until it blocks. kDone when the launch is over.
  Progress advance();
  // Grows with every step and every wait passed.
  uint64_t moved() const { return moved_; }

  // For a launch that stands still: "rows 0 to 63 wait for rank 2". Waits for the first
  // `tile_counters` counters are left out: the tracker knows them better.
  std::string blocked(int tile_counters);

 private:
  Core& core_;
  LinkedPlan& plan_;
  const Geometry& geometry_;
  Onto* onto_;  // null: kernels add nothing
  FusedDescription description_;
  ProgramView view_;
  MatrixSpace space_;
  ReductionSetup reduction_;
  Matrix input_, output_;
  std::vector<MatrixSpace::Place> inputs_, outputs_;
  Run<MatrixSpace> run_{};
  std::vector<LaneCursor> cursors_;
  std::vector<uint32_t> open_;  // lanes that are not done
  uint64_t moved_ = 0;
  bool running_ = false;
};

}  // namespace tessera
