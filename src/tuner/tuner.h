// Which algorithm, protocol and slice size a call of a communicator gets, and why.
//
// All ranks must choose alike: the choice depends only on what all of them know, the profile
// included (ranks compare its digest when they meet). With a profile the candidate of the least
// estimated time is chosen, in other slices than the rule's only if these were measured with as
// many ranks and clearly faster; without, or for collectives that it does not know, the rules of
// tuner/rules.h. What a tuner plugin advises (tuner/adviser.h) comes before both, and what the user
// forces (TESSERA_ALGO, NCCL_ALGO, NCCL_PROTO, TESSERA_LL_MAX) first of all.
//
// Whether a call runs eagerly is decided before ranks have met, by its size alone; how it runs
// otherwise after they have, knowing how all buffers can be reached.
//
// Thread safety: one thread at a time. decide() and bulk() do not allocate once a collective was
// seen; references stay valid as long as the tuner.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tuner/adviser.h"
#include "tuner/estimate.h"
#include "tuner/wishes.h"

namespace tessera {

class Tuner {
 public:
  // Most ranges of block sizes with an eager algorithm of their own.
  static constexpr int kMostEager = 4;
  // Most eager choices of a collective in all, a plugin's included.
  static constexpr int kEagerChoices = 2 * kMostEager;

  // `plugin` may be null. Errors: what is forced can never be had.
  static Result<Tuner> create(const Site& site, const Config& config,
                              std::shared_ptr<const Profile> profile,
                              std::unique_ptr<TunerPlugin> plugin = nullptr);

  // Calls whose blocks have up to `largest` bytes run so.
  struct Eager {
    size_t largest = 0;
    Candidate candidate;
    Choice choice;
    int number = 0;  // below kEagerChoices, different for all of a collective
  };
  // The eager ranges of a collective, ascending, at most kMostEager; beyond the last: bulk. Errors:
  // what is forced cannot run this collective.
  Result<const std::vector<Eager>*> eager(Collective collective);
  // How a call with blocks of so many bytes runs eagerly; null: bulk.
  Result<const Eager*> eager(Collective collective, size_t block_bytes);
  Result<Candidate> bulk(const BulkCall& call);
  // What a call runs as in the end, eager or not.
  Result<Candidate> chosen(const BulkCall& call);
  Choice choice_of_bulk(const Candidate& candidate) const;
  Choice choice_of_bulk(const BulkCall& call, const Candidate& candidate);

  // A plugin has a say, whose answers only its rank knows.
  bool asks_plugin() const { return adviser_ != nullptr; }
  const Site& site() const { return site_; }
  Estimator& estimator() { return estimator_; }
  // Candidates in other slices that the profile knows for this many ranks.
  std::vector<Candidate> measured_slices(const Candidate& candidate) const;
  // What an explanation says of a candidate that was not considered; empty: it was.
  std::string excluded(const Candidate& candidate) const;

 private:
  struct Range {
    size_t largest;
    Candidate candidate;
  };
  // Bulk candidates by block size, for one way to reach buffers.
  using Ranges = std::vector<Range>;

  Tuner(const Site& site, const Config& config, Wishes wishes,
        std::shared_ptr<const Profile> profile, std::unique_ptr<TunerPlugin> plugin);

  // Null: nothing is advised.
  const Advice* advised(Collective collective, size_t block_bytes);
  const Eager* advised_eager(const Candidate& candidate);
  Candidate with_root(const BulkCall& call, const Candidate& chosen) const;
  Status plan_eager(Collective collective);
  void add_for_large(Collective collective);
  Result<Ranges> plan_bulk(Collective collective, Access access);
  std::pair<Candidate, Estimate> best_slices(const Candidate& candidate, size_t block_bytes);
  std::optional<Candidate> best(Collective collective, size_t block_bytes, bool eager,
                                Access access);
  Status impossible(Collective collective) const;

  Site site_;
  Config config_;
  Wishes wishes_;
  Estimator estimator_;
  std::array<std::vector<Candidate>, kCollectives> candidates_;  // that may be chosen
  std::array<bool, kCollectives> planned_{};
  std::array<std::vector<Eager>, kCollectives> eager_;
  std::array<std::array<Ranges, 3>, kCollectives> bulk_;  // by Access
  std::unique_ptr<Adviser> adviser_;
  std::array<std::vector<Eager>, kCollectives> advised_eager_;
};

}  // namespace tessera
