// Whether products of one shape are fused: the model proposes, the first calls decide.
//
// Where the matrices do not suit the NCCL calls (unfused.h), all calls are fused. Else:
//
//   calls 0 - 2   unfused; the model is told how long the product takes
//   calls 3 - 5   fused, if the model says that it pays; else all calls are unfused
//   from then on  whichever was faster
//
// The first of three calls is not counted, the faster of the others is. Ranks agree by a small
// all-reduce after the third and the sixth call, so that all run the same.
// Thread safety: one thread at a time.
#pragma once

#include <tessera/fused.h>
#include <tessera/gemm.h>

#include <chrono>

namespace tessera::gemm {

// Microseconds of one call.
struct CallTimes {
  double product = 0, total = 0;
};

inline double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

class Choice {
 public:
  // Before the first call: whether the matrices suit the NCCL calls. Collective, once.
  ncclResult_t open(ncclComm_t comm, bool suits_unfused);
  bool can_be_unfused() const { return suits_; }
  bool settled() const { return call_ >= 2 * kTrials; }
  // The next call is fused.
  bool fuses() const { return settled() ? fuses_ : call_ >= kTrials; }

  // After a call that took so long. `consumes`: the product uses what the collective brings.
  // Collective while not settled.
  ncclResult_t record(ncclComm_t comm, tsrFused_t op, bool consumes, const CallTimes& times);

 private:
  static constexpr int kTrials = 3;

  ncclResult_t propose(tsrFused_t op, bool consumes);

  int call_ = 0;
  bool open_ = false, suits_ = true, fuses_ = false;
  double product_ = 0, unfused_ = 0, fused_ = 0;
};

}  // namespace tessera::gemm
