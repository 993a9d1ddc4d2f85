#include "tools/tune_tool/standing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/median.h"

namespace tessera::tune {
namespace {

constexpr double kWhoLeft = 1.1;  // so many times as long as the best, at least

// The mean of the middle half of what was measured; 0: nothing was. A median would tell one of two
// speeds that a machine has, whichever was met more often.
double middle(std::vector<double> values) {
  std::erase(values, 0.0);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto quarter =
      static_cast<std::ptrdiff_t>(values.size() == 2 ? 0 : (values.size() + 1) / 4);
  const double sum = std::accumulate(values.begin() + quarter, values.end() - quarter, 0.0);
  return sum / static_cast<double>(std::ssize(values) - 2 * quarter);
}

// Of times. Of two the lower: what disturbs makes them longer.
double usual(const std::vector<double>& times) {
  std::vector<double> measured = times;
  std::erase(measured, 0.0);
  return measured.size() == 2 ? std::min(measured[0], measured[1]) : middle(std::move(measured));
}

// By pass, how much slower than usual it was; 1 where nobody can tell.
std::vector<double> slowness(const std::vector<Runner>& runners) {
  size_t most = 0, passes = 0;
  for (const Runner& runner : runners) {
    most = std::max(most, passes_of(runner));
    passes = std::max(passes, runner.times.size());
  }
  std::vector<std::vector<double>> told(passes);
  for (const Runner& runner : runners) {
    if (passes_of(runner) < most || most == 0) continue;
    const double time = usual(runner.times);
    for (size_t pass = 0; pass < runner.times.size(); ++pass)
      if (runner.ran(pass)) told[pass].push_back(runner.times[pass] / time);
  }
  std::vector<double> result;
  for (std::vector<double>& ratios : told)
    result.push_back(ratios.empty() ? 1 : median(std::move(ratios)));
  return result;
}

bool can_carry(const Runner& runner, const Field& field, Access access) {
  return runner.who < field.contestants.size() &&
         reaches(field.contestants[runner.who].candidate, access);
}

// The runners that still compete, could carry such calls and have run, the fastest first.
std::vector<size_t> ranking(const std::vector<Runner>& runners, const std::vector<double>& times,
                            const Field& field, Access access) {
  std::vector<size_t> order;
  for (size_t i = 0; i < runners.size(); ++i)
    if (runners[i].in && times[i] > 0 && can_carry(runners[i], field, access)) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  return order;
}

}  // namespace

size_t passes_of(const Runner& runner) {
  return runner.times.size() -
         static_cast<size_t>(std::count(runner.times.begin(), runner.times.end(), 0.0));
}

std::vector<double> settled(const std::vector<Runner>& runners, const Field& field) {
  const std::vector<double> slow = slowness(runners);
  std::vector<double> result;
  for (const Runner& runner : runners) {
    std::vector<double> times;
    for (size_t pass = 0; pass < runner.times.size(); ++pass)
      times.push_back(runner.times[pass] / slow[pass]);
    result.push_back(usual(times));
  }
  for (const Access access : kAccesses) {
    const std::vector<size_t> order = ranking(runners, result, field, access);
    if (order.empty()) continue;
    const double least = kWhoLeft * result[order[0]];
    for (size_t i = 0; i < runners.size(); ++i)
      if (!runners[i].in && result[i] > 0 && can_carry(runners[i], field, access))
        result[i] = std::max(result[i], least);
  }
  return result;
}

std::vector<size_t> leaders(const std::vector<Runner>& runners, const Field& field) {
  const std::vector<double> times = settled(runners, field);
  std::vector<size_t> result;
  for (const Access access : kAccesses) {
    const std::vector<size_t> order = ranking(runners, times, field, access);
    if (!order.empty()) result.push_back(runners[order[0]].who);
  }
  return result;
}

void narrow(std::vector<Runner>& runners, const Field& field, size_t size, const Bar& bar,
            const std::vector<size_t>& also) {
  const std::vector<double> times = settled(runners, field);
  std::vector<bool> stays(runners.size());
  for (const Access access : kAccesses) {
    const std::vector<size_t> order = ranking(runners, times, field, access);
    for (size_t place = 0; place < std::min(order.size(), bar.most); ++place)
      if (times[order[place]] <= bar.near * times[order[0]]) stays[order[place]] = true;
  }
  for (size_t i = 0; i < runners.size(); ++i) {
    const size_t who = runners[i].who;
    const bool named = std::find(also.begin(), also.end(), who) != also.end();
    if (named || who == field.automatic() || field.is_chosen(who, size)) continue;
    runners[i].in = runners[i].in && stays[i];
  }
}

void only_who_is_judged(std::vector<Runner>& runners, const Field& field, size_t size) {
  const std::vector<size_t> order =
      ranking(runners, settled(runners, field), field, Access::kMapped);
  const size_t winner = order.empty() ? runners.size() : order.front();
  for (size_t i = 0; i < runners.size(); ++i) {
    const size_t who = runners[i].who;
    runners[i].in = i == winner || who == field.automatic() || field.is_chosen(who, size);
  }
}

Verdict verdict(const std::vector<Runner>& runners, const Field& field, size_t size, size_t from) {
  const Runner* best = nullptr;
  const Runner* chosen = nullptr;
  const Runner* automatic = nullptr;
  for (const Runner& runner : runners) {
    if (!runner.in) continue;
    if (runner.who == field.automatic()) {
      automatic = &runner;
    } else if (field.is_chosen(runner.who, size)) {
      chosen = &runner;
    } else {
      best = &runner;
    }
  }
  if (best == nullptr) best = chosen;  // the tuner chose it
  if (chosen == nullptr || automatic == nullptr) return {};
  std::vector<double> times[3], choice, automatic_ratio;
  for (size_t pass = from; pass < best->times.size(); ++pass) {
    if (!best->ran(pass) || !chosen->ran(pass) || !automatic->ran(pass)) continue;
    times[0].push_back(best->times[pass]);
    times[1].push_back(chosen->times[pass]);
    times[2].push_back(automatic->times[pass]);
    choice.push_back(times[1].back() / times[0].back());
    automatic_ratio.push_back(times[2].back() / times[0].back());
  }
  if (times[0].size() < kLeastPasses) return {};
  return {best->who,        middle(times[0]), middle(times[1]),
          middle(times[2]), middle(choice),   middle(automatic_ratio)};
}

}  // namespace tessera::tune
