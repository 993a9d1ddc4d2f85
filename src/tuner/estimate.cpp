#include "tuner/estimate.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

using Curve = std::vector<std::pair<double, double>>;

// Straight between the points; beyond the last ones they, since small messages cost the same.
double at(const Curve& curve, double x) {
  if (x <= curve.front().first) return curve.front().second;
  if (x >= curve.back().first) return curve.back().second;
  const auto right = std::lower_bound(curve.begin(), curve.end(), std::pair(x, -HUGE_VAL));
  const auto left = right - 1;
  const double slope = (right->second - left->second) / (right->first - left->first);
  return left->second + slope * (x - left->first);
}

// What other slices add to the rule's time, where that was measured.
double slicing(const Curve& other, const Curve& rule, double x) {
  constexpr double kUnknown = 0.2;  // 15 % more time: enough to return to the rule's
  if (x < other.front().first) return 0;
  const double last = std::min(x, other.back().first);
  const double gain = at(other, last) - at(rule, last);
  return x <= other.back().first ? gain : std::max(gain, kUnknown);
}

// Ascending, and no time above a later one.
void smooth(Curve& curve) {
  std::sort(curve.begin(), curve.end());
  for (size_t i = curve.size() - 1; i > 0; --i)
    curve[i - 1].second = std::min(curve[i - 1].second, curve[i].second);
}

bool beyond(const Curve& curve, double x) { return x > curve.back().first; }

}  // namespace

const char* to_string(Source source) {
  constexpr const char* kNames[] = {"measured", "interpolated", "extrapolated", "model"};
  return kNames[static_cast<int>(source)];
}

Estimator::Estimator(const Site& site, std::shared_ptr<const Profile> profile, const Config& config)
    : site_(site), config_(config) {
  if (profile == nullptr || site.hosts > 1) return;
  for (const Sample& sample : profile->samples) {
    curves_[{sample.collective, sample.protocol, sample.algorithm, sample.slot_bytes, sample.ranks}]
        .emplace_back(std::log2(static_cast<double>(sample.block_bytes)),
                      std::log2(sample.microseconds));
    rank_counts_.push_back(sample.ranks);
    const auto collective = static_cast<size_t>(sample.collective);
    known_[collective] = true;
    largest_[collective] = std::max(largest_[collective], sample.block_bytes);
  }
  for (auto& [key, curve] : curves_) smooth(curve);
  std::sort(rank_counts_.begin(), rank_counts_.end());
  rank_counts_.erase(std::unique(rank_counts_.begin(), rank_counts_.end()), rank_counts_.end());
}

const Estimator::Curve* Estimator::curve(const Candidate& candidate, int ranks) const {
  const auto found =
      curves_.find({candidate.algorithm->collective, candidate.protocol,
                    std::string(candidate.algorithm->name), candidate.slot_bytes, ranks});
  return found == curves_.end() ? nullptr : &found->second;
}

double Estimator::known(const Candidate& candidate, int ranks, size_t block_bytes) {
  const double x = std::log2(static_cast<double>(block_bytes));
  const Curve& own = *curve(candidate, ranks);
  const Curve* rule = curve(by_rule(candidate), ranks);
  const bool other = candidate.slot_bytes > 0 && rule != nullptr;
  const Curve& base = other ? *rule : own;
  double time = at(base, x);
  if (beyond(base, x)) {
    const auto last = static_cast<size_t>(std::llround(std::exp2(base.back().first)));
    const Candidate modelled = other ? by_rule(candidate) : candidate;
    time += std::log2(model(modelled, ranks, block_bytes) / model(modelled, ranks, last));
  }
  return other ? time + slicing(own, *rule, std::min(x, base.back().first)) : time;
}

double Estimator::model(const Candidate& candidate, int ranks, size_t block_bytes) {
  Site site = site_;
  if (ranks != site.ranks) {  // where they would sit is not known
    site.ranks = ranks;
    site.crowded = ranks > site.cores;
    site.order.clear();
    site.node_of.clear();
  }
  auto [entry, fresh] = works_.try_emplace({candidate.algorithm, ranks});
  if (fresh) {
    const AlgorithmParams params = params_at(site, some_root(candidate.algorithm->collective));
    entry->second = work_of(candidate.algorithm->build(params), site);
  }
  const bool sliced = candidate.protocol == Protocol::kStaged;
  const size_t slot = sliced ? choice_of(candidate, site, config_, 0).slot_bytes : 0;
  return model_time(entry->second, candidate.protocol, site, block_bytes, slot);
}

Estimate Estimator::estimate(const Candidate& candidate, size_t block_bytes) {
  block_bytes = std::max<size_t>(block_bytes, 1);
  const double x = std::log2(static_cast<double>(block_bytes));
  if (const Curve* own = curve(candidate, site_.ranks)) {
    return {std::exp2(known(candidate, site_.ranks, block_bytes)),
            beyond(*own, x) ? Source::kExtrapolated : Source::kMeasured};
  }
  int fewer = 0, more = 0;
  for (const int ranks : rank_counts_) {
    if (curve(candidate, ranks) == nullptr) continue;
    if (ranks < site_.ranks) fewer = ranks;
    if (ranks > site_.ranks && more == 0) more = ranks;
  }
  if (fewer != 0 && more != 0) {
    const double share = std::log2(static_cast<double>(site_.ranks) / fewer) /
                         std::log2(static_cast<double>(more) / fewer);
    const double low = known(candidate, fewer, block_bytes);
    const double high = known(candidate, more, block_bytes);
    const bool outside = beyond(*curve(candidate, fewer), x) || beyond(*curve(candidate, more), x);
    return {std::exp2(low + share * (high - low)),
            outside ? Source::kExtrapolated : Source::kInterpolated};
  }
  const double modelled = model(candidate, site_.ranks, block_bytes);
  if (const int nearest = fewer != 0 ? fewer : more; nearest != 0) {
    const double time = std::exp2(known(candidate, nearest, block_bytes));
    return {time * modelled / model(candidate, nearest, block_bytes), Source::kExtrapolated};
  }
  return {modelled, Source::kModel};
}

}  // namespace tessera
