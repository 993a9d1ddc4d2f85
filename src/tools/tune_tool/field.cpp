#include "tools/tune_tool/field.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tools/common/layout.h"
#include "tools/common/names.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {
namespace {

constexpr size_t kSmallest = 8;  // bytes of a message

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kReduceScatter,
                               Collective::kAllGather, Collective::kAllToAll,
                               Collective::kBroadcast, Collective::kReduce,
                               Collective::kGather,    Collective::kScatter};

Result<std::vector<Collective>> chosen(const std::vector<std::string>& names) {
  std::vector<Collective> result;
  for (const Collective collective : kAll) {
    if (names.empty()) result.push_back(collective);
  }
  for (const std::string& name : names) {
    const Result<Collective> found = tools::collective_named(name, kAll);
    if (!found.ok()) return found.status();
    if (std::find(result.begin(), result.end(), found.value()) == result.end())
      result.push_back(found.value());
  }
  return result;
}

// Powers of 4 from 8 bytes, as the perf comparison has them; the same blocks once.
std::vector<size_t> blocks(Collective collective, int ranks, size_t largest) {
  std::vector<size_t> result;
  for (size_t total = kSmallest; total <= largest; total *= 4) {
    const size_t block = block_of(collective, ranks, total);
    if (block > 0 && (result.empty() || block > result.back())) result.push_back(block);
  }
  return result;
}

// All candidates, each staged one followed by the same in other slices, which are timed with blocks
// for which these make a difference, up to many slices: beyond, each more takes as long as the last.
void add_contestants(Field& field, const Site& site, const Config& config) {
  constexpr size_t kManySlices = 64;
  field.low_latency_cap = low_latency_cap(field.collective, site);
  for (const Candidate& candidate : candidates(field.collective, site)) {
    const size_t rule = field.contestants.size();
    field.contestants.push_back({candidate, {}, {}});
    if (candidate.protocol == Protocol::kLowLatency)
      field.contestants.back().span.most = field.low_latency_cap;
    for (const Candidate& other : other_slices(candidate, site, config)) {
      const size_t slice = one_pass_up_to(other, site, config);
      if (field.block_bytes.back() <= slice) continue;
      field.contestants.push_back({other, {slice + 1, kManySlices * slice}, rule});
    }
  }
}

}  // namespace

Config neutral(const Config& config) {
  Config result = config;
  result.algorithm.clear();
  result.nccl_algorithms.clear();
  result.nccl_protocols.clear();
  result.tuner_plugin = "none";
  result.profile = "none";
  result.low_latency_max = -1;
  result.slice_bytes = -1;
  result.single_copy = true;
  result.share_memory = true;
  return result;
}

int Field::least_calls(size_t who, double call_us) const {
  constexpr int kSteady = 12, kAhead = 300;
  constexpr double kSteadyBatch = 8000;  // us
  const bool eager =
      who == automatic() || contestants[who].candidate.protocol == Protocol::kLowLatency;
  return std::min(has_root(collective) && eager ? kAhead : kSteady,
                  calls_for(call_us, kSteadyBatch));
}

Result<std::vector<Field>> fields(const Selection& selection, const Config& config) {
  std::vector<Field> all;
  const Result<std::vector<Collective>> collectives = chosen(selection.collectives);
  if (!collectives.ok()) return collectives.status();
  const int cores = tools::usable_cores();
  const std::set<int> ranks_of(selection.ranks.begin(), selection.ranks.end());
  for (const int ranks : ranks_of) {
    for (const Collective collective : collectives.value()) {
      Field field;
      field.ranks = ranks;
      field.collective = collective;
      field.block_bytes = blocks(collective, ranks, selection.largest);
      if (field.block_bytes.empty()) continue;
      add_contestants(field, {ranks, ranks > cores, cores}, neutral(config));
      all.push_back(std::move(field));
    }
  }
  if (all.empty()) {
    return Status::error(Code::kInvalidArgument,
                         "--largest {}: nothing to measure; messages are {} bytes and more, shared "
                         "out among the ranks",
                         selection.largest, kSmallest);
  }
  return all;
}

}  // namespace tessera::tune
