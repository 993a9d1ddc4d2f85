// What a call's reduction means for the kernels: scales of raw inputs (PreMulSum, float Avg) and a
// divisor of results (integer Avg).
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "exec/host_space.h"

namespace tessera {

class ReductionSetup {
 public:
  explicit ReductionSetup(int members) : scales_(members), scalars_(members) {}

  // For a call over `ranks` ranks. PreMulSum factors of members start as this rank's; set_scalar()
  // replaces them.
  const Reduction& prepare(const Call& call, int ranks);
  void set_scalar(int member, uint64_t scalar) { scalars_[member] = scalar; }

 private:
  Reduction reduction_;
  std::vector<const void*> scales_;
  std::vector<uint64_t> scalars_;
  uint64_t reciprocal_ = 0;
};

}  // namespace tessera
