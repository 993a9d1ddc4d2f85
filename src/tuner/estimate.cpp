#include "tuner/estimate.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

using Curve = std::vector<std::pair<double, double>>;

// Straight between the points, and beyond the last ones in the direction of the last two; below the
// first the first, since small messages cost the same.
double at(const Curve& curve, double x) {
  if (x <= curve.front().first || curve.size() == 1) return curve.front().second;
  const auto above = std::lower_bound(curve.begin(), curve.end(), std::pair(x, -HUGE_VAL));
  const auto right = above == curve.end() ? curve.end() - 1 : above;
  const auto left = right - 1;
  const double slope = (right->second - left->second) / (right->first - left->first);
  return left->second + slope * (x - left->first);
}

// The same in other slices: the rule's time; from the first size on at which they were measured,
// times the ratio there, which stays beyond the last.
double at(const Curve& other, const Curve& rule, double x) {
  if (x < other.front().first) return at(rule, x);
  const double nearest = std::min(x, other.back().first);
  return at(rule, x) + at(other, nearest) - at(rule, nearest);
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
    known_[static_cast<size_t>(sample.collective)] = true;
  }
  for (auto& [key, curve] : curves_) std::sort(curve.begin(), curve.end());
  std::sort(rank_counts_.begin(), rank_counts_.end());
  rank_counts_.erase(std::unique(rank_counts_.begin(), rank_counts_.end()), rank_counts_.end());
}

const Estimator::Curve* Estimator::curve(const Candidate& candidate, int ranks) const {
  const auto found =
      curves_.find({candidate.algorithm->collective, candidate.protocol,
                    std::string(candidate.algorithm->name), candidate.slot_bytes, ranks});
  return found == curves_.end() ? nullptr : &found->second;
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
  const double x = std::log2(static_cast<double>(std::max<size_t>(block_bytes, 1)));
  if (const Curve* own = curve(candidate, site_.ranks)) {
    const Curve* rule = curve(by_rule(candidate), site_.ranks);
    const bool other = candidate.slot_bytes > 0 && rule != nullptr;
    return {std::exp2(other ? at(*own, *rule, x) : at(*own, x)),
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
    const Curve &few = *curve(candidate, fewer), &many = *curve(candidate, more);
    const double low = at(few, x), high = at(many, x);
    return {std::exp2(low + share * (high - low)),
            beyond(few, x) || beyond(many, x) ? Source::kExtrapolated : Source::kInterpolated};
  }
  const double modelled = model(candidate, site_.ranks, block_bytes);
  if (const int nearest = fewer != 0 ? fewer : more; nearest != 0) {
    const double known = std::exp2(at(*curve(candidate, nearest), x));
    return {known * modelled / model(candidate, nearest, block_bytes), Source::kExtrapolated};
  }
  return {modelled, Source::kModel};
}

}  // namespace tessera
