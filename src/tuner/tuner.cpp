#include "tuner/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tuner/rules.h"

namespace tessera {
namespace {

constexpr size_t kAnySize = std::numeric_limits<size_t>::max();
constexpr size_t kSmallest = 4, kLargest = size_t{1} << 30;  // sizes that are looked at
// Another algorithm must be so much better before it gets a range of its own, and so must other
// slices before they are considered.
constexpr double kWorthASwitch = 0.9;
// What is hardly faster than the rule's choice may be so by the chance of one measurement; the rules
// prefer what does not depend on when ranks are scheduled.
constexpr double kWorthLeavingTheRule = 0.95;

bool is_eager(const Candidate& candidate) { return candidate.protocol == Protocol::kLowLatency; }

}  // namespace

Result<Tuner> Tuner::create(const Site& site, const Config& config,
                            std::shared_ptr<const Profile> profile,
                            std::unique_ptr<TunerPlugin> plugin) {
  Result<Wishes> wishes = Wishes::parse(config);
  if (!wishes.ok()) return wishes.status();
  return Tuner(site, config, std::move(wishes).value(), std::move(profile), std::move(plugin));
}

Tuner::Tuner(const Site& site, const Config& config, Wishes wishes,
             std::shared_ptr<const Profile> profile, std::unique_ptr<TunerPlugin> plugin)
    : site_(site),
      config_(config),
      wishes_(std::move(wishes)),
      estimator_(site, std::move(profile), config) {
  if (plugin != nullptr) adviser_ = std::make_unique<Adviser>(std::move(plugin), site, config);
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const std::vector<Candidate> all = candidates(collective, site);
    for (const Candidate& candidate : all) {
      if (wishes_.allows(candidate)) candidates_[c].push_back(candidate);
    }
    // A wish for no collective in particular does not bind those that cannot fulfil it.
    if (site.ranks == 1 || (candidates_[c].empty() && !wishes_.strict(collective)))
      candidates_[c] = all;
  }
}

std::string Tuner::excluded(const Candidate& candidate) const {
  const auto& allowed = candidates_[static_cast<size_t>(candidate.algorithm->collective)];
  if (std::find(allowed.begin(), allowed.end(), by_rule(candidate)) != allowed.end()) return {};
  return wishes_.text();
}

std::vector<Candidate> Tuner::measured_slices(const Candidate& candidate) const {
  std::vector<Candidate> measured = other_slices(candidate, site_, config_);
  std::erase_if(measured, [&](const Candidate& other) { return !estimator_.measured(other); });
  return measured;
}

Status Tuner::impossible(Collective collective) const {
  std::string names;
  for (const Candidate& candidate : candidates(collective, site_)) {
    const std::string name(candidate.algorithm->name);
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) {
    return Status::error(Code::kInvalidUsage, "{} with {} ranks: there is no algorithm",
                         to_string(collective), site_.ranks);
  }
  return Status::error(Code::kInvalidUsage,
                       "{}: {} with {} ranks has no such algorithm that can run here; it has: {}",
                       wishes_.text(), to_string(collective), site_.ranks, names);
}

// The candidate in the slices of the least estimated time.
std::pair<Candidate, Estimate> Tuner::best_slices(const Candidate& candidate, size_t block_bytes) {
  std::pair best(candidate, estimator_.estimate(candidate, block_bytes));
  const double enough = kWorthASwitch * best.second.microseconds;
  for (const Candidate& other : measured_slices(candidate)) {
    const Estimate estimate = estimator_.estimate(other, block_bytes);
    if (estimate.microseconds < std::min(enough, best.second.microseconds))
      best = {other, estimate};
  }
  return best;
}

// The allowed candidate of the least estimated time; none if none is allowed. What was measured comes
// before what is only modelled: candidates without a sample were too slow to go on with.
std::optional<Candidate> Tuner::best(Collective collective, size_t block_bytes, bool eager,
                                     Access access) {
  const Candidate ruled = eager ? eager_default(collective, site_)
                                : bulk_default({collective, block_bytes, access, true}, site_);
  const bool may_rule = reaches(ruled, access) && excluded(ruled).empty();
  std::optional<Candidate> best;
  Estimate least;
  for (const Candidate& candidate : candidates_[static_cast<size_t>(collective)]) {
    if (is_eager(candidate) != eager || !reaches(candidate, access)) continue;
    const auto [sliced, estimate] = best_slices(candidate, block_bytes);
    const bool guessed = estimate.source == Source::kModel;
    const bool better = guessed == (least.source == Source::kModel)
                            ? estimate.microseconds < least.microseconds
                            : !guessed;
    if (best && !better) continue;
    best = sliced;
    least = estimate;
  }
  if (!best) return best;
  const Estimate rules = estimator_.estimate(ruled, block_bytes);
  const bool as_good = (rules.source == Source::kModel) == (least.source == Source::kModel) &&
                       kWorthLeavingTheRule * rules.microseconds < least.microseconds;
  return as_good && may_rule ? ruled : best;
}

Result<const std::vector<Tuner::Eager>*> Tuner::eager(Collective collective) {
  const auto index = static_cast<size_t>(collective);
  if (!planned_[index]) {
    if (Status s = plan_eager(collective); !s.ok()) return s;
    for (size_t i = 0; i < eager_[index].size(); ++i) eager_[index][i].number = static_cast<int>(i);
    planned_[index] = true;
  }
  return &eager_[index];
}

Result<const Tuner::Eager*> Tuner::eager(Collective collective, size_t block_bytes) {
  if (const Advice* advice = advised(collective, block_bytes))
    return is_eager(advice->candidate) ? advised_eager(advice->candidate) : nullptr;
  Result<const std::vector<Eager>*> ranges = eager(collective);
  if (!ranges.ok()) return ranges.status();
  for (const Eager& range : *ranges.value()) {
    if (block_bytes <= range.largest) return &range;
  }
  return nullptr;
}

const Advice* Tuner::advised(Collective collective, size_t block_bytes) {
  if (adviser_ == nullptr) return nullptr;
  const Advice& advice = adviser_->advice(collective, block_bytes,
                                          candidates_[static_cast<size_t>(collective)], estimator_);
  if (!advice.given()) return nullptr;
  const auto most = static_cast<size_t>(config_.low_latency_max);
  const bool refused =
      config_.low_latency_max >= 0 && is_eager(advice.candidate) != (block_bytes <= most);
  return refused ? nullptr : &advice;
}

// Of any size: what exceeds the slots goes in several passes.
const Tuner::Eager* Tuner::advised_eager(const Candidate& candidate) {
  std::vector<Eager>& known = advised_eager_[static_cast<size_t>(candidate.algorithm->collective)];
  for (const Eager& eager : known) {
    if (eager.candidate == candidate) return &eager;
  }
  // tree, binomial, ring and pat at most; references must stay valid
  known.reserve(static_cast<size_t>(kEagerChoices - kMostEager));
  const int number = kMostEager + static_cast<int>(known.size());
  known.push_back({kAnySize, candidate, choice_of(candidate, site_, config_, kLargest), number});
  return &known.back();
}

Status Tuner::plan_eager(Collective collective) {
  const auto& allowed = candidates_[static_cast<size_t>(collective)];
  if (allowed.empty()) return impossible(collective);
  std::vector<Eager>& ranges = eager_[static_cast<size_t>(collective)];
  if (site_.ranks == 1) {  // nobody to meet
    const Candidate& any = allowed.front();
    ranges.push_back({kAnySize, any, choice_of(any, site_, config_, kLargest), 0});
    return {};
  }
  const bool any_eager = std::any_of(allowed.begin(), allowed.end(), is_eager);
  const bool any_bulk = !std::all_of(allowed.begin(), allowed.end(), is_eager);
  if (!any_eager || collective == Collective::kBarrier) return {};
  const size_t cap = low_latency_cap(collective, site_);
  size_t most = eager_max(collective, site_, config_);
  if (!any_bulk) most = kAnySize;
  const bool fixed = !any_bulk || config_.low_latency_max >= 0;
  if (most == 0) return {};
  if (!estimator_.knows(collective)) {
    const Candidate preferred = eager_default(collective, site_);
    const bool may = std::find(allowed.begin(), allowed.end(), preferred) != allowed.end();
    const Candidate chosen =
        may ? preferred : *std::find_if(allowed.begin(), allowed.end(), is_eager);
    ranges.push_back({most, chosen, choice_of(chosen, site_, config_, most), 0});
    if (!any_bulk) add_for_large(collective);
    return {};
  }
  for (size_t bytes = kSmallest; bytes <= cap && estimator_.covers(collective, bytes); bytes *= 2) {
    const std::optional<Candidate> eager = best(collective, bytes, true, Access::kMapped);
    const std::optional<Candidate> bulk = best(collective, bytes, false, Access::kMapped);
    const double time = estimator_.estimate(*eager, bytes).microseconds;
    if (!fixed && estimator_.estimate(*bulk, bytes).microseconds < time) break;
    const bool another =
        ranges.empty() ||
        (!(ranges.back().candidate == *eager) && ranges.size() < static_cast<size_t>(kMostEager) &&
         time < kWorthASwitch * estimator_.estimate(ranges.back().candidate, bytes).microseconds);
    if (another) ranges.push_back({bytes, *eager, {}, 0});
    ranges.back().largest = bytes;
  }
  if (fixed && !ranges.empty()) ranges.back().largest = most;
  for (Eager& range : ranges)
    range.choice = choice_of(range.candidate, site_, config_, range.largest);
  return {};
}

// Where nothing but eager candidates is allowed, the rule's first choice has the small blocks that
// it is for, and the others go as the model likes it best.
void Tuner::add_for_large(Collective collective) {
  constexpr size_t kTypical = size_t{1} << 20;
  std::vector<Eager>& ranges = eager_[static_cast<size_t>(collective)];
  const auto time = [&](const Candidate& candidate) {
    return estimator_.estimate(candidate, kTypical).microseconds;
  };
  const auto& allowed = candidates_[static_cast<size_t>(collective)];
  const Candidate& large =
      *std::min_element(allowed.begin(), allowed.end(),
                        [&](const Candidate& a, const Candidate& b) { return time(a) < time(b); });
  if (large == ranges.front().candidate) return;
  Eager& small = ranges.front();
  small.largest = eager_max(collective, site_, config_);
  small.choice = choice_of(small.candidate, site_, config_, small.largest);
  ranges.push_back({kAnySize, large, choice_of(large, site_, config_, kLargest), 0});
}

// Without a profile one range by the rules, for the size at hand; see bulk().
Result<Tuner::Ranges> Tuner::plan_bulk(Collective collective, Access access) {
  Ranges ranges;
  for (size_t bytes = kSmallest; bytes <= kLargest && estimator_.covers(collective, bytes);
       bytes *= 2) {
    const std::optional<Candidate> candidate = best(collective, bytes, false, access);
    if (!candidate) return impossible(collective);
    const bool another =
        ranges.empty() ||
        (!(ranges.back().candidate == *candidate) &&
         estimator_.estimate(*candidate, bytes).microseconds <
             kWorthASwitch * estimator_.estimate(ranges.back().candidate, bytes).microseconds);
    if (another) ranges.push_back({bytes, *candidate});
    ranges.back().largest = bytes;
  }
  ranges.back().largest = kAnySize;
  return ranges;
}

Result<Candidate> Tuner::bulk(const BulkCall& call) {
  if (const Advice* advice = advised(call.collective, call.block_bytes);
      advice != nullptr && !is_eager(advice->candidate))
    return advice->candidate;
  const auto& allowed = candidates_[static_cast<size_t>(call.collective)];
  if (!estimator_.covers(call.collective, call.block_bytes)) {
    const Candidate preferred = bulk_default(call, site_);
    if (std::find(allowed.begin(), allowed.end(), preferred) != allowed.end()) return preferred;
    for (const Candidate& candidate : allowed) {
      if (!is_eager(candidate) && reaches(candidate, call.access)) return candidate;
    }
    return impossible(call.collective);
  }
  Ranges& ranges = bulk_[static_cast<size_t>(call.collective)][static_cast<size_t>(call.access)];
  if (ranges.empty()) {
    Result<Ranges> planned = plan_bulk(call.collective, call.access);
    if (!planned.ok()) return planned.status();
    ranges = std::move(planned).value();
  }
  const auto range = std::find_if(ranges.begin(), ranges.end(),
                                  [&](const Range& r) { return call.block_bytes <= r.largest; });
  return with_root(call, range->candidate);
}

// Profiles are measured with a root that has a copy of its own to make. One that is in place can help
// the others instead, which "direct" does.
Candidate Tuner::with_root(const BulkCall& call, const Candidate& chosen) const {
  if (call.collective != Collective::kBroadcast || call.root_copies ||
      chosen.algorithm->name != "direct-get")
    return chosen;
  const Candidate helped{chosen.protocol,
                         find_algorithm(call.collective, "direct", Reach::kDirect)};
  const auto& allowed = candidates_[static_cast<size_t>(call.collective)];
  return std::find(allowed.begin(), allowed.end(), helped) != allowed.end() ? helped : chosen;
}

Result<Candidate> Tuner::chosen(const BulkCall& call) {
  Result<const Eager*> eager = this->eager(call.collective, call.block_bytes);
  if (!eager.ok()) return eager.status();
  if (eager.value() != nullptr) return eager.value()->candidate;
  return bulk(call);
}

Choice Tuner::choice_of_bulk(const Candidate& candidate) const {
  return choice_of(candidate, site_, config_, 0);
}

Choice Tuner::choice_of_bulk(const BulkCall& call, const Candidate& candidate) {
  Choice choice = choice_of_bulk(candidate);
  const Advice* advice = advised(call.collective, call.block_bytes);
  if (advice != nullptr && advice->candidate == candidate && advice->slot_bytes > 0)
    choice.slot_bytes = advice->slot_bytes;
  return choice;
}

}  // namespace tessera
