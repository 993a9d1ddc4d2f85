// What the reporting process prints: nccl-tests' lines, and tessera's columns after them.
//
// Columns after nccl-tests' own, in this order where asked for: out-of-place mpi(us), ratio,
// in-place mpi(us), ratio, out-of-place %bound, in-place %bound. Not thread safe; only thread 0 of
// process 0 has a report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/collective.h"
#include "common/json_report.h"
#include "common/limits.h"
#include "common/options.h"
#include "common/outcome.h"
#include "common/worker.h"

namespace tessera::perf {

// One finished point, for averages, plots and CSV.
struct Result {
  Job job;
  bool in_place = false;
  size_t shown_bytes = 0;  // max(send, receive): nccl-tests' size column
  size_t shown_count = 0;
  Point point;
  double alg_bandwidth = 0;  // GB/s, 1e9
  double bus_bandwidth = 0;
  double bound_seconds = NAN;

  double ratio() const { return point.baseline_seconds / point.seconds; }
};

struct DeviceLine {
  int rank, group, pid, device;
  char host[64];
  char name[80];
};

class Report {
 public:
  // json and limits may be null.
  Report(const Options& options, const Collective& collective, std::string program, int ranks,
         JsonReport* json, const Limits* limits)
      : options_(options),
        collective_(collective),
        program_(std::move(program)),
        ranks_(ranks),
        json_(json),
        limits_(limits) {}

  void start(const std::vector<DeviceLine>& devices);
  void table_header();
  void row_start(const Job& job, const Counts& counts);
  void placement(const Job& job, const Counts& counts, bool in_place, const Point& point);
  void row_end();

  // The closing lines; the exit code that they justify.
  ExitCode finish(size_t buffer_memory_bytes);

  const std::vector<Result>& results() const { return results_; }
  bool write_csv(const std::string& path) const;

 private:
  void memory_line(size_t bytes) const;
  void geometric_means() const;

  const Options& options_;
  const Collective& collective_;
  const std::string program_;
  const int ranks_;
  JsonReport* json_;
  const Limits* limits_;
  std::vector<Result> results_;
  size_t row_begin_ = 0;  // first result of the present row
  int failed_points_ = 0;
};

// nccl-tests' number format: as many decimals (2, 1, 0) as fit into width, else exponent form.
std::string fitted(double value, int width);

std::string time_stamp();

// The geometric mean of ratio over the points of a placement that have one; NaN: none.
double geometric_mean(const std::vector<Result>& results, bool in_place);

}  // namespace tessera::perf
