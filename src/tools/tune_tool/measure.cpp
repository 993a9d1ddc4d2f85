#include "tools/tune_tool/measure.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "base/median.h"
#include "plan/shape.h"
#include "tools/tune_tool/contestant.h"

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

// Finals: the best, or whoever is judged, in longer batches, since ranks that share cores need a
// while to fall into step.
constexpr int kDuelists = 3, kFinalists = 2;
constexpr int kFinalRounds = 9, kLonger = 2, kSteady = 12;
constexpr double kNear = 1.1;         // so near the best: a finalist, too
constexpr int kFewCalls = 30;         // a batch of these begins with one that is not timed: caches
constexpr double kLeastBatch = 1000;  // us
constexpr int kLooks = 3;             // before a batch: how many calls it takes
constexpr size_t kJudgedBy = 256 << 10;  // bytes of a block

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Median of a[i] / b[i], as far as there are both.
double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median(std::move(ratios));
}

class Contest {
 public:
  Contest(Seat& seat, const Agenda& agenda)
      : seat_(seat), agenda_(agenda), batch_us_(agenda.batch_us) {}

  Status prepare() {
    Site site;
    site.ranks = seat_.ranks();
    const size_t cap = low_latency_cap(agenda_.collective, site);
    size_t rule = 0;
    for (size_t i = 0; i < agenda_.candidates.size(); ++i) {
      const Candidate& candidate = agenda_.candidates[i];
      const bool plain = candidate.protocol == Protocol::kSingleCopy;
      if (Status s = add(config_of(candidate, agenda_.config, cap), plain ? plain_ : shareable_);
          !s.ok())
        return s;
      Contestant& contestant = contestants_.back();
      contestant.span = agenda_.spans[i];
      contestant.staged = candidate.protocol == Protocol::kStaged;
      if (candidate.protocol == Protocol::kLowLatency) contestant.span.most = cap;
      if (candidate.slot_bytes == 0)
        rule = i;
      else
        contestant.rule = rule;
    }
    return judges() ? add(agenda_.config, shareable_) : Status();
  }

  // A contest of all for each size, from large to small: what is hopeless for large messages is left
  // out early, where it costs. Then the finals.
  Status run() {
    const size_t columns = judges() ? kVerdictNumbers : contestants_.size();
    const size_t all = agenda_.block_bytes.size();
    std::vector<double> table(all * columns);
    const Result<size_t> sizes = sizes_in_time();
    if (!sizes.ok()) return sizes.status();
    std::vector<std::vector<double>> medians(sizes.value());
    std::vector<Final> finals;
    for (size_t i = sizes.value(); i-- > 0;) {
      if (agenda_.until) share_out(i + 1, sizes.value());
      Result<std::vector<double>> here = contest(agenda_.block_bytes[i]);
      if (!here.ok()) return here.status();
      medians[i] = std::move(here).value();
      if (Status s = nominate(i, medians[i], finals); !s.ok()) return s;
      seat_.progress(1 - static_cast<double>(i + all) / static_cast<double>(2 * all));
    }
    if (Status s = play(finals); !s.ok()) return s;
    if (!judges())
      for (const Final& final : finals)
        medians[final.size][index(*final.who)] = median(final.times);
    for (size_t i = 0; i < sizes.value(); ++i) {
      const std::vector<double> row = judges() ? verdict_on(i, finals) : std::move(medians[i]);
      std::copy(row.begin(), row.end(), table.begin() + static_cast<std::ptrdiff_t>(i * columns));
    }
    for (const double time : table) seat_.report(time);
    return {};
  }

 private:
  // Of one who runs in the finals with blocks of a size.
  struct Final {
    size_t size;
    Contestant* who;
    int calls;
    std::vector<double> times;
  };

  Status add(const Config& config, const Buffers& buffers) {
    Result<UniqueId> id = seat_.new_id(config);
    if (!id.ok()) return id.status();
    Result<std::unique_ptr<Communicator>> comm =
        Communicator::create(id.value(), seat_.ranks(), seat_.rank(), {config, "tune"});
    if (!comm.ok()) return comm.status();
    contestants_.push_back({});
    contestants_.back().comm = std::move(comm).value();
    contestants_.back().buffers = &buffers;
    return {};
  }

  Status call(Contestant& contestant, size_t block_bytes, int times) const {
    Call call;
    call.collective = agenda_.collective;
    call.root = has_root(agenda_.collective) ? 0 : -1;
    call.count = block_bytes / sizeof(float);
    if (input_blocks(agenda_.collective, seat_.ranks(), call.root, seat_.rank()) > 0)
      call.send = contestant.buffers->input.data();
    if (output_blocks(agenda_.collective, seat_.ranks(), call.root, seat_.rank()) > 0)
      call.recv = contestant.buffers->output.data();
    const Work work{contestant.comm.get(), call};
    for (int i = 0; i < times; ++i) {
      if (Status s = execute({&work, 1}); !s.ok()) return s;
    }
    return {};
  }

  // Mean over the ranks of the time of one of `calls` calls.
  Result<double> time(Contestant& contestant, size_t block_bytes, int calls) {
    seat_.meet();
    const auto start = Clock::now();
    if (Status s = call(contestant, block_bytes, calls); !s.ok()) return s;
    return seat_.mean(microseconds_since(start) / calls);
  }

  double left_us() {
    const std::chrono::duration<double, std::micro> here = *agenda_.until - Clock::now();
    return std::max(seat_.of_first(here.count()), 0.0);
  }

  // How many sizes, from the smallest on, the time suffices for: judged by a call of a middling one,
  // for long calls take as long as their bytes.
  Result<size_t> sizes_in_time() {
    const double calls_of_each = 2 + agenda_.rounds;
    constexpr double kSmallerToo = 4.0 / 3;
    const std::vector<size_t>& sizes = agenda_.block_bytes;
    const auto above = [&](size_t bytes) {
      return static_cast<size_t>(std::upper_bound(sizes.begin(), sizes.end(), bytes) -
                                 sizes.begin());
    };
    const size_t always = above(kAlwaysTimed), middle = above(kJudgedBy);
    if (!agenda_.until || always == sizes.size()) return sizes.size();
    const size_t bytes = sizes[std::max<size_t>(middle, 1) - 1];
    const auto one = std::find_if(contestants_.begin(), contestants_.end(), [&](const auto& each) {
      return each.staged && takes_part(each, bytes);
    });
    if (one == contestants_.end()) return sizes.size();
    if (Status s = reserve(bytes); !s.ok()) return s;
    if (Result<double> first = time(*one, bytes, 1); !first.ok()) return first.status();
    const Result<double> call = time(*one, bytes, 2);
    if (!call.ok()) return call.status();
    const double left = left_us();
    size_t count = sizes.size();
    for (; count > always; --count) {
      const size_t all = taking_part(sizes[count - 1]) + finalists();
      const double calls = calls_of_each * kSmallerToo * static_cast<double>(all);
      const double larger = static_cast<double>(sizes[count - 1]) / static_cast<double>(bytes);
      if (calls * call.value() * larger <= left) break;
    }
    return count;
  }

  // Batches that fit into the time that is left, if all that may be measured of the first sizes, and
  // the finals of all that are timed, get their share.
  void share_out(size_t sizes, size_t timed) {
    double batches = static_cast<double>(finalists() * timed) * kFinalRounds * kLonger;
    for (size_t i = 0; i < sizes; ++i)
      batches += static_cast<double>(taking_part(agenda_.block_bytes[i])) * (agenda_.rounds + 1);
    batch_us_ = std::max(kLeastBatch, left_us() / batches);
  }

  size_t finalists() const { return judges() ? kDuelists : kFinalists; }

  size_t taking_part(size_t block_bytes) const {
    return static_cast<size_t>(std::count_if(
        contestants_.begin(), contestants_.end(),
        [&](const Contestant& contestant) { return takes_part(contestant, block_bytes); }));
  }

  bool judges() const { return !agenda_.chosen.empty(); }

  // Room for calls with such blocks.
  Status reserve(size_t block_bytes) {
    constexpr size_t kLeast = 64;
    for (Buffers* buffers : {&shareable_, &plain_}) {
      const size_t in = block_bytes * blocks(input_blocks);
      const size_t out = block_bytes * blocks(output_blocks);
      if (Status s = buffers->input.reserve(std::max(in, kLeast)); !s.ok()) return s;
      if (Status s = buffers->output.reserve(std::max(out, kLeast)); !s.ok()) return s;
    }
    return {};
  }

  // Of this rank's input or output.
  size_t blocks(int (*count)(Collective, int, int, int)) const {
    return static_cast<size_t>(count(agenda_.collective, seat_.ranks(), 0, seat_.rank()));
  }

  // Sets how many calls make a batch, after some looks, which warm up too. The shortest look counts:
  // by a disturbed one a batch would be too short for ever.
  Status warm_up(Contestant& contestant, size_t block_bytes) {
    contestant.times.clear();
    contestant.calls = 1;
    Result<double> first = time(contestant, block_bytes, 2);
    if (first.ok() && first.value() > batch_us_) first = time(contestant, block_bytes, 1);
    if (!first.ok()) return first.status();
    if (first.value() > batch_us_) return {};
    double shortest = first.value();
    for (int look = 0; look < kLooks; ++look) {
      const int calls = calls_for(shortest, batch_us_ / kLooks / 2);
      const Result<double> next = time(contestant, block_bytes, calls);
      if (!next.ok()) return next.status();
      shortest = std::min(shortest, next.value());
    }
    contestant.calls = calls_for(shortest, batch_us_);
    return {};
  }

  static int calls_for(double time, double batch) {
    return static_cast<int>(std::clamp(batch / std::max(time, 0.01), 1.0, 1e6));
  }

  bool takes_part(const Contestant& contestant, size_t block_bytes) const {
    if (judges() && &contestant == &contestants_.back()) return false;
    if (!contestant.span.contains(block_bytes) || contestant.hopeless > 1) return false;
    if (!contestant.rule) return true;
    const Contestant& rule = contestants_[*contestant.rule];
    return rule.promising && takes_part(rule, block_bytes);
  }

  // Times a batch of so many calls.
  Status batch(Contestant& contestant, size_t block_bytes, int calls, std::vector<double>& times) {
    if (calls > 1 && calls < kFewCalls) {
      if (Status s = call(contestant, block_bytes, 1); !s.ok()) return s;
    }
    const Result<double> t = time(contestant, block_bytes, calls);
    if (t.ok()) times.push_back(t.value());
    return t.status();
  }

  size_t index(const Contestant& contestant) const {
    return static_cast<size_t>(&contestant - contestants_.data());
  }

  // The medians of all; 0: not timed. Notes who need not take part in smaller sizes.
  Result<std::vector<double>> contest(size_t block_bytes) {
    if (Status s = reserve(block_bytes); !s.ok()) return s;
    std::vector<Contestant*> active;
    for (Contestant& contestant : contestants_) {
      if (takes_part(contestant, block_bytes)) active.push_back(&contestant);
    }
    for (Contestant* contestant : active) {
      if (Status s = warm_up(*contestant, block_bytes); !s.ok()) return s;
    }
    for (int round = 0; round < agenda_.rounds; ++round) {
      seat_.begin_round(round);
      for (Contestant* each : active) {
        if (Status s = batch(*each, block_bytes, each->calls, each->times); !s.ok()) return s;
      }
    }
    std::vector<double> medians(contestants_.size());
    for (Contestant* contestant : active) medians[index(*contestant)] = median(contestant->times);
    double best = std::numeric_limits<double>::max(), best_staged = best;
    for (Contestant* contestant : active) {
      const double time = medians[index(*contestant)];
      best = std::min(best, time);
      if (contestant->staged) best_staged = std::min(best_staged, time);
    }
    for (Contestant* contestant : active) {
      const double time = medians[index(*contestant)];
      contestant->promising = time <= agenda_.promising * best_staged;
      const double limit =
          contestant->rule ? agenda_.worse * medians[*contestant->rule] : agenda_.hopeless * best;
      const bool slow = time > limit;
      contestant->hopeless = slow ? contestant->hopeless + 1 : 0;
    }
    return medians;
  }

  // The best candidate that buffers like the chosen one's allow.
  size_t winner(const std::vector<double>& medians) const {
    size_t best = 0;
    for (size_t i = 0; i < agenda_.candidates.size(); ++i) {
      const bool usable = medians[i] > 0 && reaches(agenda_.candidates[i], Access::kMapped);
      if (usable && (medians[best] <= 0 || medians[i] < medians[best])) best = i;
    }
    return best;
  }

  // Who runs in the finals of the i-th size: those who are judged; or the best, and the next if it
  // is near.
  Status nominate(size_t i, const std::vector<double>& medians, std::vector<Final>& finals) {
    std::vector<size_t> named;
    if (judges()) {
      named = {winner(medians), contestants_.size() - 1};
      if (agenda_.chosen[i] != named[0]) named.push_back(agenda_.chosen[i]);
    } else {
      for (size_t c = 0; c < medians.size(); ++c)
        if (medians[c] > 0) named.push_back(c);
      std::sort(named.begin(), named.end(),
                [&](size_t a, size_t b) { return medians[a] < medians[b]; });
      // Single calls are long enough not to need it.
      if (!named.empty() && contestants_[named[0]].calls == 1) return {};
      const bool near = named.size() > 1 && medians[named[1]] <= kNear * medians[named[0]];
      named.resize(std::min<size_t>(named.size(), near ? kFinalists : 1));
    }
    for (const size_t c : named) {
      Contestant& who = contestants_[c];
      if (medians[c] <=
          0) {  // was not in the contest, where the others found how many calls it takes
        if (Status s = warm_up(who, agenda_.block_bytes[i]); !s.ok()) return s;
      }
      const int calls = who.calls == 1 ? 1 : std::max(kLonger * who.calls, kSteady);
      finals.push_back({i, &who, calls, {}});
    }
    return {};
  }

  // All sizes in each round, so that those of a size are spread over the time that all take: the
  // cores of a virtual machine may be near each other in one moment and far apart in the next.
  Status play(std::vector<Final>& finals) {
    for (int round = 0; round < kFinalRounds; ++round) {
      seat_.begin_round(round);
      for (Final& final : finals) {
        if (final.calls == 1 && round >= agenda_.rounds) continue;
        const size_t block_bytes = agenda_.block_bytes[final.size];
        if (Status s = batch(*final.who, block_bytes, final.calls, final.times); !s.ok()) return s;
      }
      seat_.progress(0.5 + 0.5 * round / kFinalRounds);
    }
    return {};
  }

  // The numbers of a Verdict on the i-th size, whose finalists are in the order of nominate().
  std::vector<double> verdict_on(size_t i, const std::vector<Final>& finals) const {
    const auto of_size = [&](const Final& final) { return final.size == i; };
    const auto best = std::find_if(finals.begin(), finals.end(), of_size);
    const auto automatic = best + 1;
    const size_t winner = index(*best->who);
    const auto chosen = agenda_.chosen[i] == winner ? best : best + 2;
    return {static_cast<double>(winner),
            median(best->times),
            median(chosen->times),
            median(automatic->times),
            median_ratio(chosen->times, best->times),
            median_ratio(automatic->times, best->times)};
  }

  Seat& seat_;
  const Agenda& agenda_;
  double batch_us_;
  Buffers shareable_{true}, plain_{false};
  std::vector<Contestant> contestants_;
};

}  // namespace

Verdict verdict(std::span<const double> reported, size_t i) {
  const std::span<const double> row = reported.subspan(i * kVerdictNumbers, kVerdictNumbers);
  return {static_cast<size_t>(row[0]), row[1], row[2], row[3], row[4], row[5]};
}

Status measure(Seat& seat, const Agenda& agenda) {
  Contest contest(seat, agenda);
  if (Status s = contest.prepare(); !s.ok()) return s;
  return contest.run();
}

}  // namespace tessera::tune
