// How long a call will take with a candidate, and how that is known.
//
//   measured      the profile has this candidate with so many ranks; between sizes by a straight
//                 line in the logarithms. Other slices than the rule's: by their ratio to the
//                 rule's
//   interpolated  it has it with fewer and more ranks: between them likewise
//   extrapolated  the call lies beyond what the profile has: larger than the largest size, or with
//                 more ranks than the most or fewer than the fewest: the nearest known time, by the
//                 ratio of the model's times
//   model         nothing is known of it: a walk over the plan with default costs (tuner/model.h)
//
// Disturbances only make calls slower, and no call is faster for moving more: a sample above a
// larger size's counts as that one. Where only the rule's slices were measured at a larger size,
// others count as a little worse there, or as much worse as they were.
//
// Slices count in the model: those of the candidate, or the configuration's.
//
// Thread safety: an estimator is one thread's; it remembers plans it has walked.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "tuner/model.h"
#include "tuner/profile.h"

namespace tessera {

enum class Source : uint8_t { kMeasured, kInterpolated, kExtrapolated, kModel };
const char* to_string(Source source);

struct Estimate {
  double microseconds = 0;
  Source source = Source::kModel;
};

class Estimator {
 public:
  // `profile` may be null. Profiles are measured on one host and say nothing of several.
  Estimator(const Site& site, std::shared_ptr<const Profile> profile, const Config& config = {});

  Estimate estimate(const Candidate& candidate, size_t block_bytes);

  // Whether the profile has the candidate, in its slices, with as many ranks as the site: estimates
  // of any size rest on that then.
  bool measured(const Candidate& candidate) const {
    return curve(candidate, site_.ranks) != nullptr;
  }

  // Whether blocks of so many bytes are near what the profile has of the collective, at whatever
  // number of ranks: four times the largest at most. Beyond, estimates are no ground for a choice.
  bool covers(Collective collective, size_t block_bytes) const {
    return knows(collective) && block_bytes / 4 <= largest_[static_cast<size_t>(collective)];
  }

  // Whether the profile knows the collective at all: then its times decide, else rules do.
  bool knows(Collective collective) const { return known_[static_cast<size_t>(collective)]; }

 private:
  using Curve = std::vector<std::pair<double, double>>;  // log2 bytes, log2 microseconds; ascending
  using Key = std::tuple<Collective, Protocol, std::string, size_t, int>;

  const Curve* curve(const Candidate& candidate, int ranks) const;
  // By the curve for so many ranks, which exists. log2 microseconds.
  double known(const Candidate& candidate, int ranks, size_t block_bytes);
  double model(const Candidate& candidate, int ranks, size_t block_bytes);

  Site site_;
  Config config_;
  std::map<Key, Curve> curves_;
  std::array<bool, kCollectives> known_{};
  std::array<size_t, kCollectives> largest_{};  // bytes of a block
  std::vector<int> rank_counts_;                // ascending
  std::map<std::pair<const Algorithm*, int>, PlanWork> works_;
};

}  // namespace tessera
