// The table of fused_gemm_perf: rows of a cell, their text and JSON, and the summary.
// Thread safety: one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fused/cell.h"

namespace perf::fused {

// One way to run a cell beside its unfused counterpart. Times in us.
struct Row {
  std::string product, what;
  int ranks = 0;
  bool timer = false;
  double ratio = 0;                    // t / g
  double compute = 0, collective = 0;  // each alone
  double unfused = 0, fused = 0;
  double ideal = 0, model = 0;   // of fused; 0: none
  double read = 0, written = 0;  // bytes a rank, per launch; 0: not counted
  enum class Kind { kFusion, kAblation } kind = Kind::kFusion;
  bool judged = false;  // the model says whether to fuse
  bool advised = false;
  double best = 0;  // of both ways, where `fused` is what was chosen; else 0

  double gain() const { return unfused / fused; }
  double reached() const { return ideal / fused; }
  // Never more than 5 % slower than the better of both.
  bool right() const {
    if (best > 0) return fused <= 1.05 * best;
    return (advised ? fused : unfused) <= 1.05 * (fused < unfused ? fused : unfused);
  }
};

// What rows are called that compare what the library decided.
inline constexpr const char* kDecided = "library's";

std::vector<Row> rows_of(const std::string& product, const Setup& setup, double ratio,
                         const Cell& cell);

class Table {
 public:
  void add(std::vector<Row> rows);  // prints them
  // Geometric means and maxima of the gains, what of the ideal was reached, and how often the model
  // was right.
  void summarize() const;
  // Whether save() will be able to; leaves an existing file as it is. Errors: as save().
  static bool check(const std::string& path);
  // Errors: says on stderr that the file cannot be written, and returns false.
  bool save(const std::string& path) const;

 private:
  void summarize(const std::string& title, const std::function<bool(const Row&)>& counts) const;
  std::vector<Row> rows_;
};

}  // namespace perf::fused
