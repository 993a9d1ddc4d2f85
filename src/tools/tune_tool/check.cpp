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

Result<std::vector<double>> judge(Field& field, const Config& config,
                                  std::shared_ptr<const Profile> profile) {
  const int cores = tools::usable_cores();
  Result<Tuner> tuner =
      Tuner::create({field.ranks, field.ranks > cores, cores}, config, std::move(profile));
  if (!tuner.ok()) return tuner.status();
  std::vector<double> estimates;
  for (const size_t block_bytes : field.block_bytes) {
    const Result<Candidate> chosen =
        tuner->chosen({field.collective, block_bytes, Access::kMapped, has_root(field.collective)});
    if (!chosen.ok()) return chosen.status();
    estimates.push_back(tuner->estimator().estimate(chosen.value(), block_bytes).microseconds);
    std::vector<Contestant>& all = field.contestants;
    const auto known = std::find_if(all.begin(), all.end(), [&](const Contestant& contestant) {
      return contestant.candidate == chosen.value();
    });
    field.chosen.push_back(static_cast<size_t>(known - all.begin()));
    if (known == all.end()) all.push_back({chosen.value(), {1, 0}, {}});
  }
  return estimates;
}

void Report::add(const Cell& cell, const Field& field, double estimate) {
  if (cells_ == 0) {
    command_line::print("{:<15} {:>5} {:>10}  {:<37} {:>9}  {:<37} {:>9} {:>6} {:>9} {:>9} {:>6}\n",
                        "collective", "ranks", "block", "best", "us", "chosen", "us", "ratio",
                        "automatic", "estimate", "error");
  }
  const Verdict found = verdict(cell.runners, field, cell.size, kJudgingPass);
  if (found.automatic_us <= 0) {  // there was no time for it
    ++left_out_;
    return;
  }
  const double error = estimate / found.automatic_us - 1;
  ++cells_;
  near_ += found.automatic <= kNear ? 1 : 0;
  chosen_near_ += found.choice <= kNear ? 1 : 0;
  estimated_ += std::abs(error) <= kEstimate ? 1 : 0;
  worst_ = std::max(worst_, found.automatic);
  chosen_worst_ = std::max(chosen_worst_, found.choice);
  const auto named = [&](size_t who) { return describe(field.contestants[who].candidate); };
  command_line::print(
      "{:<15} {:>5} {:>10}  {:<37} {:>9.2f}  {:<37} {:>9.2f} {:>6.2f} {:>9.2f} {:>9.2f} "
      "{:>+5.0f}%\n",
      to_string(field.collective), field.ranks, field.block_bytes[cell.size], named(found.best),
      found.best_us, named(field.chosen[cell.size]), found.chosen_us, found.choice,
      found.automatic_us, estimate, error * 100);
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
