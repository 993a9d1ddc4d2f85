// How good the tuner's choices and estimates are, cell by cell.
#pragma once

#include <memory>
#include <vector>

#include "tools/tune_tool/tournament.h"
#include "tuner/profile.h"

namespace tessera::tune {

// Has the field judge what the tuner chooses with this profile; adds candidates that are chosen but
// not in it, without a contest of their own. Returns the estimate of each choice, by size.
Result<std::vector<double>> judge(Field& field, const Config& config,
                                  std::shared_ptr<const Profile> profile);

class Report {
 public:
  // Prints the cell's line, if there was time for it. `estimate`: of the choice.
  void add(const Cell& cell, const Field& field, double estimate);
  // Prints the summary. True if at least 90 % of the choices are within 10 % of the best, as they
  // are and as communicators run them, no chosen candidate is worse than 1.5 times, and at least
  // 80 % of the estimates are within 30 %.
  bool finish() const;

 private:
  // near_, worst_: of the automatic runs; chosen_: of what they chose, timed by itself
  int cells_ = 0, left_out_ = 0, near_ = 0, chosen_near_ = 0, estimated_ = 0;
  double worst_ = 0, chosen_worst_ = 0;
};

}  // namespace tessera::tune
