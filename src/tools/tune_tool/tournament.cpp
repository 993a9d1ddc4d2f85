#include "tools/tune_tool/tournament.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/tune_tool/entrants.h"
#include "tools/tune_tool/look.h"
#include "tools/tune_tool/passes.h"

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLookingShare = 0.48;  // of the time, for the first pass
constexpr size_t kPasses = 12, kJudgedPasses = kJudgingPass + 16;
// Passes that small cells get even if the time is over, where somebody is judged.
constexpr size_t kJudgedSure = kJudgingPass + kLeastPasses;
// Beyond so many times its share, and as many seconds, the first pass leaves out what is left.
constexpr double kTooLate = 2;
constexpr std::chrono::seconds kLittleTooLate(30);

// Fields with more ranks take longer, about as the bytes that move; all take a while to start.
double weight(const Field& field) {
  constexpr int kStart = 3;
  double cells = 0;
  for (const Contestant& contestant : field.contestants)
    cells += static_cast<double>(
        std::count_if(field.block_bytes.begin(), field.block_bytes.end(),
                      [&](size_t bytes) { return contestant.span.contains(bytes); }));
  return cells * (field.ranks + kStart);
}

// What took longer than its share is made up for by those that follow.
Result<std::vector<Cell>> first_pass(const std::vector<Field>& fields, const Config& config,
                                     Clock::time_point end, const Start& start, const Show& show) {
  std::vector<Cell> cells;
  double left = 0;
  for (const Field& field : fields) left += weight(field);
  const Clock::time_point began = Clock::now();
  const auto too_late = [&] {
    const Clock::duration took = Clock::now() - began;
    return took > kTooLate * (end - began) && took > kLittleTooLate;
  };
  for (size_t i = 0; i < fields.size(); ++i) {
    show(kLookingShare * static_cast<double>(i) / static_cast<double>(fields.size()),
         fmt::format("{}, {} ranks", to_string(fields[i].collective), fields[i].ranks));
    if (i > 0 && too_late()) {
      for (size_t size = 0; size < fields[i].block_bytes.size(); ++size)
        cells.push_back({i, size, {}});
      continue;
    }
    const Clock::time_point now = Clock::now();
    const double share = weight(fields[i]) / left;
    left -= weight(fields[i]);
    Result<std::unique_ptr<Stopwatch>> team =
        start(fields[i].ranks, entrants_of(fields[i], config));
    if (!team.ok()) return team.status();
    Result<std::vector<std::vector<Runner>>> sizes =
        look(fields[i], *team.value(),
             now + std::chrono::duration_cast<Clock::duration>(share * (end - now)));
    if (!sizes.ok()) return sizes.status();
    for (size_t size = 0; size < sizes->size(); ++size)
      cells.push_back({i, size, std::move(sizes.value()[size])});
  }
  return cells;
}

}  // namespace

Result<std::vector<Cell>> tournament(const std::vector<Field>& fields, const Config& config,
                                     Clock::time_point end, const Start& start, const Show& show) {
  const Clock::time_point now = Clock::now();
  const Clock::time_point looked =
      now + std::chrono::duration_cast<Clock::duration>(kLookingShare * (end - now));
  Result<std::vector<Cell>> cells = first_pass(fields, config, looked, start, show);
  if (!cells.ok()) return cells;
  const bool judged = fields[0].judged();
  const size_t passes = judged ? kJudgedPasses : kPasses;
  const size_t sure = judged ? kJudgedSure : 0;
  Passes rest(fields, config, start, cells.value());
  for (size_t number = 1; number < passes; ++number) {
    if (number < kJudgingPass || !judged) rest.narrow_after(number - 1);
    if (number == kJudgingPass && judged) rest.begin_judging();
    show(kLookingShare +
             (1 - kLookingShare) * static_cast<double>(number) / static_cast<double>(passes),
         fmt::format("the best, pass {} of {}", number, passes - 1));
    const std::chrono::duration<double, std::micro> left = end - Clock::now();
    const double budget = std::max(left.count(), 0.0) / static_cast<double>(passes - number);
    if (Status s = rest.run(number, budget, number < sure); !s.ok()) return s;
  }
  return cells;
}

}  // namespace tessera::tune
