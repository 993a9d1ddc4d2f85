// One thread's part of a measurement: issues calls for its ranks, times and checks them.
//
// All workers of all processes call the same members in the same order (they meet in Team). Not
// thread safe itself.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "common/baseline.h"
#include "common/session.h"
#include "common/verify.h"

namespace tessera::perf {

struct Job {
  const ElementType* type = nullptr;
  const Operation* op = nullptr;  // null: none
  int root = -1;                  // -1: none
  size_t bytes = 0;               // of the sweep
};

// A job in one placement, with what every iteration needs.
struct Placed {
  Job job;
  bool in_place = false;
  Counts counts;
  size_t used = 0;   // bytes of a buffer that one call uses
  size_t parts = 1;  // how often that fits into the buffers
};

struct Point {
  double seconds = 0;             // per call
  double baseline_seconds = NAN;  // NaN: not measured
  double wrong = -1;              // elements over all ranks; -1: not checked
  int iterations = 0;             // timed, per rank
  std::vector<double> samples;    // -I: seconds per iteration, maximum over threads and processes
};

class Worker {
 public:
  // baseline: null, or owned by the caller.
  Worker(Session& session, const Collective& collective, Baseline* baseline, int thread);

  // Every worker gets the same point.
  Point measure(const Job& job, bool in_place);

  Counts counts(const Job& job) const {
    return collective_.counts(job.bytes / job.type->size, job.type->size, session_.ranks());
  }

 private:
  struct Batch {
    int iterations = 1;
    std::function<void(int)> body;
    bool ours = true;
  };

  Call call_for(const RankState& state, const Placed& placed, int iteration) const;
  void issue(const Placed& placed, int iteration, int calls);
  void run_one(const RankState& state, Call call, const Job& job, int step);
  Placed place(const Job& job, bool in_place) const;

  double timed(const Batch& batch, std::vector<double>* samples);
  double reported(double seconds);
  void measure_fixed(Batch& ours, Point* point);
  void measure_adaptive(Batch& ours, Batch* theirs, Point* point);
  void calibrate(Batch* batch);

  double check(const Placed& placed, int repetition);
  void prepare(const RankState& state, const Recipe& recipe, const Placed& placed,
               std::vector<std::byte>* image) const;
  double wrong_in(const RankState& state, const Recipe& recipe, const Placed& placed,
                  const std::vector<std::byte>& image) const;

  Session& session_;
  const Collective& collective_;
  Baseline* baseline_;
  const int thread_;
  std::vector<std::vector<std::byte>>
      images_;  // per rank: the receive buffer as it must be after the call
};

}  // namespace tessera::perf
