// The passes of a tournament after the first: those who are still in run once more, in batches and
// as far as there is time.
// Thread safety: one thread.
#pragma once

#include <utility>
#include <vector>

#include "tools/tune_tool/standing.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {

class Passes {
 public:
  // All outlive it. `cells`: of the first pass; what is timed is added.
  Passes(const std::vector<Field>& fields, const Config& config, const Start& start,
         std::vector<Cell>& cells)
      : fields_(fields), config_(config), start_(start), cells_(cells) {}

  // Takes out who is not good enough after a pass, where it was run.
  void narrow_after(size_t number);
  // Only who is judged stays, where somebody is.
  void begin_judging();
  // Runs a pass in about so many microseconds; small cells also where these do not suffice, if they
  // are to run for sure.
  Status run(size_t number, double budget_us, bool sure);

 private:
  const Field& field_of(const Cell& cell) const { return fields_[cell.field]; }
  std::vector<std::vector<size_t>> all_leaders() const;
  // Microseconds of a pass.
  double cost(const Cell& cell, double batch_us) const;
  double sum(const std::vector<Cell*>& cells, double batch_us) const;
  std::pair<std::vector<Cell*>, double> affordable(double budget_us, bool sure);
  Status run_cells(const std::vector<Cell*>& cells, size_t number, double batch_us);

  const std::vector<Field>& fields_;
  const Config& config_;
  const Start& start_;
  std::vector<Cell>& cells_;
  double overhead_us_ = 0;  // of the last pass beyond its calls: communicators have to start, too
};

}  // namespace tessera::tune
