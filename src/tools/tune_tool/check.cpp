#include "tools/tune_tool/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "command_line/print.h"
#include "tools/common/layout.h"
#include "tuner/tuner.h"

namespace tessera::tune {
namespace {

constexpr double kNear = 1.10, kWorst = 1.5, kEstimate = 0.30;
constexpr double kNearShare = 0.90, kEstimateShare = 0.80;

}  // namespace

Status Report::add(int ranks, const Agenda& agenda, const std::vector<double>& times,
                   std::shared_ptr<const Profile> profile) {
  const int cores = tools::usable_cores();
  Result<Tuner> tuner =
      Tuner::create({ranks, ranks > cores, cores}, agenda.config, std::move(profile));
  if (!tuner.ok()) return tuner.status();
  if (cells_ == 0) {
    command_line::print("{:<15} {:>5} {:>10}  {:<44} {:>9}  {:<44} {:>9} {:>6} {:>9} {:>6}\n",
                        "collective", "ranks", "block", "best", "us", "chosen", "us", "ratio",
                        "estimate", "error");
  }
  const size_t columns = agenda.candidates.size() + 1;
  for (size_t i = 0; i < agenda.block_bytes.size(); ++i) {
    const double* row = &times[i * columns];
    const double automatic = row[columns - 1];
    if (automatic <= 0) {  // there was no time for it
      ++left_out_;
      continue;
    }
    size_t best = columns - 1;
    for (size_t c = 0; c + 1 < columns; ++c) {
      const bool usable = row[c] > 0 && reaches(agenda.candidates[c], Access::kMapped);
      if (usable && (best == columns - 1 || row[c] < row[best])) best = c;
    }
    Result<Candidate> chosen = tuner->chosen(
        {agenda.collective, agenda.block_bytes[i], Access::kMapped, has_root(agenda.collective)});
    if (!chosen.ok()) return chosen.status();
    const double estimate =
        tuner->estimator().estimate(chosen.value(), agenda.block_bytes[i]).microseconds;
    const auto own = std::find(agenda.candidates.begin(), agenda.candidates.end(), chosen.value());
    const double alone = row[own - agenda.candidates.begin()];  // 0: too slow to be timed again
    const double ratio = automatic / row[best], error = estimate / automatic - 1;
    const double choice = alone > 0 ? alone / row[best] : ratio;
    ++cells_;
    near_ += ratio <= kNear ? 1 : 0;
    chosen_near_ += choice <= kNear ? 1 : 0;
    estimated_ += std::abs(error) <= kEstimate ? 1 : 0;
    worst_ = std::max(worst_, ratio);
    chosen_worst_ = std::max(chosen_worst_, choice);
    command_line::print(
        "{:<15} {:>5} {:>10}  {:<44} {:>9.2f}  {:<44} {:>9.2f} {:>6.2f} {:>9.2f} {:>+5.0f}%\n",
        to_string(agenda.collective), ranks, agenda.block_bytes[i],
        best + 1 < columns ? describe(agenda.candidates[best]) : "-", row[best],
        describe(chosen.value()), automatic, ratio, estimate, error * 100);
  }
  return {};
}

bool Report::finish() const {
  if (left_out_ > 0)
    command_line::print("# {} cells were left out for want of time, the largest\n", left_out_);
  const double cells = std::max(1, cells_);
  command_line::print(
      "# {} cells: chosen candidate within 10 % of the best in {:.0f} % (wanted {:.0f}), worst "
      "{:.2f} (wanted {:.2f})\n"
      "# run by a communicator that chooses by itself: within 10 % in {:.0f} % (wanted {:.0f}), "
      "worst {:.2f}\n"
      "# estimate within 30 % in {:.0f} % (wanted {:.0f})\n",
      cells_, chosen_near_ / cells * 100, kNearShare * 100, chosen_worst_, kWorst,
      near_ / cells * 100, kNearShare * 100, worst_, estimated_ / cells * 100,
      kEstimateShare * 100);
  return std::min(near_, chosen_near_) >= kNearShare * cells && chosen_worst_ <= kWorst &&
         estimated_ >= kEstimateShare * cells;
}

}  // namespace tessera::tune
