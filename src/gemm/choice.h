// Whether products of one shape are fused: the model proposes, the first calls decide.
//
// Where the matrices do not suit the NCCL calls (unfused.h), all calls are fused. Else:
//
//   calls 0 - 2   unfused; the model is told how long the product takes
//   calls 3 - 5   fused, if the model says that it pays; else all calls are unfused
//   calls 6 - 9   in turn, if the two were within 15 % of each other
//   from then on  whichever was faster
//
// The first of three calls is not counted; of the others the fastest is. Ranks agree by a small
// all-reduce after calls 2, 5 and 9, so that all run the same.
// Thread safety: one thread at a time.
#pragma once

#include <tessera/fused.h>
#include <tessera/gemm.h>

#include <chrono>
#include <limits>

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
  bool settled() const { return call_ >= kSettled; }
  // The next call is fused.
  bool fuses() const {
    if (settled()) return fuses_;
    return call_ < kAgain ? call_ >= kFused : (call_ - kAgain) % 2 == 1;
  }

  // After a call that took so long. `consumes`: the product uses what the collective brings.
  // Collective while not settled.
  ncclResult_t record(ncclComm_t comm, tsrFused_t op, bool consumes, const CallTimes& times);

 private:
  // Calls by their number.
  static constexpr int kFused = 3, kAgain = 6, kSettled = 10;
  static constexpr double kClose = 1.15;

  void keep(bool fused, const CallTimes& times);
  ncclResult_t compare(ncclComm_t comm);
  ncclResult_t propose(tsrFused_t op, bool consumes);

  int call_ = 0;
  bool open_ = false, suits_ = true, fuses_ = false;
  static constexpr double kNone = std::numeric_limits<double>::max();
  double product_ = kNone, unfused_ = kNone, fused_ = kNone;
};

}  // namespace tessera::gemm
