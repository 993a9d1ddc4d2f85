// Builds plans step by step, allocating counters and scratch slots, so that algorithms read like
// their prose.
//
//   PlanBuilder plan("ring", Collective::kAllReduce, ranks);
//   const int arrived = plan.counter(right);                       // a counter owned by the right
//   neighbour plan.lane(rank).copy(chunk, {right, Buffer::kScratch, slot}, {rank, Buffer::kInput,
//   chunk}).signal(right, arrived); plan.lane(right).reduce(chunk, {...}, {...}).wait(arrived);
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tessera {

// The step last added to a lane; adds its waits and signals.
class StepRef {
 public:
  StepRef(Plan& plan, int rank, int lane, int step)
      : plan_(&plan), rank_(rank), lane_(lane), step_(step) {}

  StepRef& wait(int counter, uint32_t increment = 1, uint32_t lag = 0);
  StepRef& signal(int rank, int counter, uint32_t increment = 1);
  StepRef& span(int chunks);  // run length in chunks (default 1)

 private:
  Step& step();
  Plan* plan_;
  int rank_, lane_, step_;
};

// Appends to one lane of one rank.
class LaneRef {
 public:
  LaneRef(Plan& plan, int rank, int lane) : plan_(&plan), rank_(rank), lane_(lane) {}

  // `chunk`: which chunk of a block the data is (see Step).
  StepRef copy(int chunk, Ref dst, Ref src);
  StepRef copy(int chunk, std::vector<Ref> dsts, Ref src);
  StepRef reduce(int chunk, std::vector<Ref> dsts, std::vector<Ref> srcs);
  // Adds to a slot of the lane's rank; `tally`: a counter of the rank, for these steps only.
  StepRef accumulate(int chunk, Ref dst, Ref src, int tally);
  StepRef sync();

 private:
  StepRef add(Step step);
  Plan* plan_;
  int rank_, lane_;
};

class PlanBuilder {
 public:
  PlanBuilder(std::string name, Collective collective, int ranks, int root = -1,
              int chunks_per_block = 1, int scratch_depth = 1);

  LaneRef lane(int rank, int lane = 0);  // made on first use
  int counter(int rank);                 // a new step counter owned by `rank`
  int external_counter(int rank, uint32_t arrivals);
  int scratch(int rank, int chunks = 1);  // first of `chunks` new slots of `rank`

  Plan build() &&;

 private:
  Plan plan_;
};

}  // namespace tessera
