#include "tools/tune_tool/look.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastBatch = 700, kMostBatch = 1500;  // us; later passes tell the best apart
constexpr int kFewCalls = 30;    // one of so many, and one more, are not timed: caches
constexpr int kLooks = 2;        // before a batch: how many calls it takes
constexpr double kHopeless = 3;  // so many times slower than the best twice in a row, or once
                                 // in a long call: left out
constexpr double kOdd = 1.2;     // so many times as long as a larger message took: disturbed
// Other slices are timed if, at the next larger size, the rule's came so near the best staged
// candidate, until they took so many times as long as the rule's twice in a row.
constexpr double kPromising = 1.25, kWorse = 1.25;
constexpr size_t kJudgedBy = 256 << 10;  // bytes of a block

// Of a contestant at the sizes that have been looked at.
struct Form {
  double last = 0;         // its time at the last size, a larger one; 0: did not run
  bool promising = false;  // at the last size
  int hopeless = 0;        // times in a row
};

class Look {
 public:
  Look(const Field& field, Stopwatch& team, Clock::time_point until)
      : field_(field), team_(team), until_(until), form_(field.contestants.size()) {}

  Result<std::vector<std::vector<Runner>>> all_sizes() {
    std::vector<std::vector<Runner>> result(field_.block_bytes.size());
    const Result<size_t> sizes = sizes_in_time();
    if (!sizes.ok()) return sizes.status();
    for (size_t size = sizes.value(); size-- > 0;) {
      double batches = 1;
      for (size_t i = 0; i <= size; ++i) batches += kWarmUp * static_cast<double>(taking_part(i));
      const double batch_us = std::clamp(left_us() / batches, kLeastBatch, kMostBatch);
      if (Status s = look_at(size, batch_us, result[size]); !s.ok()) return s;
      judge_form(size, result[size]);
    }
    return result;
  }

 private:
  static constexpr double kWarmUp = 2;  // a batch costs so many, finding its length included

  double left_us() const {
    return std::max(std::chrono::duration<double, std::micro>(until_ - Clock::now()).count(), 0.0);
  }

  Result<double> time(size_t who, size_t size, int calls, int untimed = 0) {
    return team_.time({field_.collective, static_cast<uint32_t>(who), field_.block_bytes[size],
                       untimed, calls, 0});
  }

  bool takes_part(size_t who, size_t size) const {
    const Contestant& contestant = field_.contestants[who];
    if (!contestant.span.contains(field_.block_bytes[size]) || form_[who].hopeless > 1)
      return false;
    if (!contestant.rule) return true;
    return form_[*contestant.rule].promising && takes_part(*contestant.rule, size);
  }

  size_t taking_part(size_t size) const {
    size_t count = 0;
    for (size_t who = 0; who < form_.size(); ++who) count += takes_part(who, size) ? 1 : 0;
    return count;
  }

  // How many sizes, from the smallest on, the time suffices for: judged by a call of a middling one,
  // for long calls take about as long as their bytes, then by one of the largest.
  Result<size_t> sizes_in_time() {
    const std::vector<size_t>& sizes = field_.block_bytes;
    const auto above = [&](size_t bytes) {
      return static_cast<size_t>(std::upper_bound(sizes.begin(), sizes.end(), bytes) -
                                 sizes.begin());
    };
    const size_t always = above(kAlwaysTimed);
    const size_t middle = std::max<size_t>(above(kJudgedBy), 1) - 1;
    if (always == sizes.size()) return sizes.size();
    const size_t one = some_staged(middle);
    if (one == form_.size()) return sizes.size();
    const Result<double> call = time(one, middle, 2, 2);
    if (!call.ok()) return call.status();
    const auto fits = [&](size_t size, double call_us) {
      constexpr double kCalls = 1.5;  // of each: most are hopeless and not called again
      return kCalls * static_cast<double>(taking_part(size)) * call_us <= left_us();
    };
    size_t count = sizes.size();
    for (; count > always; --count) {
      const double larger =
          static_cast<double>(sizes[count - 1]) / static_cast<double>(sizes[middle]);
      if (!fits(count - 1, call.value() * larger)) continue;
      const Result<double> this_large = time(one, count - 1, 1);
      if (!this_large.ok()) return this_large.status();
      if (fits(count - 1, this_large.value())) break;
    }
    return count;
  }

  // Or the number of contestants.
  size_t some_staged(size_t size) const {
    size_t who = 0;
    while (
        who < form_.size() &&
        !(field_.contestants[who].candidate.protocol == Protocol::kStaged && takes_part(who, size)))
      ++who;
    return who;
  }

  // How many calls make a batch, after some looks, which warm up too. The shortest look counts: by a
  // disturbed one a batch would be too short for ever. Of calls longer than a batch the second or
  // the fourth is timed, for the first ones map memory, and none is left to time: 0. Once the time is
  // over one look must do.
  Result<int> warm_up(Runner& runner, size_t size, double batch_us) {
    Result<double> first = time(runner.who, size, 1, 1);
    if (first.ok() && first.value() > batch_us && first.value() <= kLongCall) {
      const Result<double> again = time(runner.who, size, 1, 1);
      if (!again.ok()) return again.status();
      first = std::min(first.value(), again.value());
    }
    if (!first.ok()) return first.status();
    if (first.value() > batch_us) {
      runner.times.push_back(first.value());
      return 0;
    }
    double shortest = first.value();
    const int looks = left_us() > 0 ? kLooks : 1;
    for (int look = 0; look < looks; ++look) {
      const int calls = calls_for(shortest, batch_us / kLooks / 2);
      const Result<double> next = time(runner.who, size, calls, 1 + calls / kFewCalls);
      if (!next.ok()) return next.status();
      shortest = std::min(shortest, next.value());
    }
    return std::max(calls_for(shortest, batch_us), field_.least_calls(runner.who, shortest));
  }

  Status look_at(size_t size, double batch_us, std::vector<Runner>& runners) {
    for (size_t who = 0; who < form_.size(); ++who) {
      if (takes_part(who, size) || field_.is_chosen(who, size)) runners.push_back({who, true, {}});
    }
    if (field_.judged()) runners.push_back({field_.automatic(), true, {}});
    std::vector<int> calls;
    for (Runner& runner : runners) {
      const Result<int> in_batch = warm_up(runner, size, batch_us);
      if (!in_batch.ok()) return in_batch.status();
      calls.push_back(in_batch.value());
    }
    double best = std::numeric_limits<double>::max();
    for (size_t i = 0; i < runners.size(); ++i) {
      if (Status s = run(runners[i], size, calls[i]); !s.ok()) return s;
      best = std::min(best, runners[i].times[0]);
    }
    for (size_t i = 0; i < runners.size(); ++i) {  // one time alone makes nobody hopeless
      const double time = runners[i].times[0];
      if (time <= kHopeless * best && !is_odd(runners[i])) continue;
      runners[i].times.clear();
      const Result<int> again = warm_up(runners[i], size, batch_us);
      if (!again.ok()) return again.status();
      if (Status s = run(runners[i], size, again.value()); !s.ok()) return s;
      runners[i].times[0] = std::min(runners[i].times[0], time);
    }
    return {};
  }

  bool is_odd(const Runner& runner) const {
    if (runner.who == field_.automatic()) return false;
    const double larger = form_[runner.who].last;
    return larger > 0 && runner.times[0] > kOdd * larger;
  }

  // Times a batch, if there are calls.
  Status run(Runner& runner, size_t size, int calls) {
    if (calls == 0) return {};
    const Result<double> t = time(runner.who, size, calls, calls > 1 ? 1 + calls / kFewCalls : 0);
    if (t.ok()) runner.times.push_back(t.value());
    return t.status();
  }

  // Who need not take part in smaller sizes: who is hopeless for all kinds of buffers.
  void judge_form(size_t size, const std::vector<Runner>& runners) {
    constexpr double kNever = std::numeric_limits<double>::max();
    double best_staged = kNever;
    std::array<double, std::size(kAccesses)> best;
    best.fill(kNever);
    std::vector<double> times(form_.size());
    for (const Runner& runner : runners) {
      if (runner.who == field_.automatic() || !takes_part(runner.who, size)) continue;
      const Contestant& contestant = field_.contestants[runner.who];
      times[runner.who] = runner.times[0];
      for (size_t i = 0; i < best.size(); ++i)
        if (reaches(contestant.candidate, kAccesses[i]))
          best[i] = std::min(best[i], runner.times[0]);
      if (contestant.candidate.protocol == Protocol::kStaged && !contestant.rule)
        best_staged = std::min(best_staged, runner.times[0]);
    }
    for (size_t who = 0; who < form_.size(); ++who) {
      form_[who].last = times[who];
      if (times[who] <= 0) continue;
      const Contestant& contestant = field_.contestants[who];
      double limit = contestant.rule ? kWorse * times[*contestant.rule] : 0;
      for (size_t i = 0; !contestant.rule && i < best.size(); ++i)
        if (reaches(contestant.candidate, kAccesses[i]))
          limit = std::max(limit, kHopeless * best[i]);
      form_[who].promising = times[who] <= kPromising * best_staged;
      const int weight = times[who] > kLongCall ? 2 : 1;
      form_[who].hopeless = times[who] > limit ? form_[who].hopeless + weight : 0;
    }
  }

  const Field& field_;
  Stopwatch& team_;
  const Clock::time_point until_;
  std::vector<Form> form_;
};

}  // namespace

Result<std::vector<std::vector<Runner>>> look(const Field& field, Stopwatch& team,
                                              Clock::time_point until) {
  return Look(field, team, until).all_sizes();
}

}  // namespace tessera::tune
