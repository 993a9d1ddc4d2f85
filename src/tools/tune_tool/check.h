// How good the tuner's choices and estimates are, cell by cell.
#pragma once

#include <memory>
#include <vector>

#include "tools/tune_tool/measure.h"
#include "tuner/profile.h"

namespace tessera::tune {

// Has the agenda judge what the tuner chooses with this profile; adds candidates that are chosen but
// not in it, without a contest of their own. Returns the estimate of each choice, by size.
Result<std::vector<double>> judge(Agenda& agenda, int ranks,
                                  std::shared_ptr<const Profile> profile);

class Report {
 public:
  // Prints a line for each size that there was time for. `times`: as measure() reports them.
  void add(int ranks, const Agenda& agenda, const std::vector<double>& times,
           const std::vector<double>& estimates);
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
