#include "tuner/adviser.h"

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "tuner/wishes.h"

namespace tessera {
namespace {

using plugin_abi::Function;

constexpr size_t kSmallestSlot = 4096, kLargestSlot = size_t{1} << 20;
constexpr size_t kSlotsOfAll = size_t{4} << 20;  // the slots of one copy of scratch

std::optional<Function> function_of(Collective collective) {
  switch (collective) {
    case Collective::kBroadcast:
      return Function::kBroadcast;
    case Collective::kReduce:
      return Function::kReduce;
    case Collective::kAllGather:
      return Function::kAllGather;
    case Collective::kReduceScatter:
      return Function::kReduceScatter;
    case Collective::kAllReduce:
      return Function::kAllReduce;
    default:  // NCCL asks no plugin about the others
      return std::nullopt;
  }
}

constexpr int kRows[] = {plugin_abi::kTree, plugin_abi::kRing, plugin_abi::kPat};

// The candidate of each entry, and its cost.
template <class Named>
CostTable costs_of(const std::vector<Candidate>& allowed, size_t block_bytes, Estimator& estimator,
                   Named& named) {
  CostTable costs;
  for (auto& row : costs) row.fill(plugin_abi::kIgnored);
  for (const Candidate& candidate : allowed) {
    const int family = nccl_family(candidate.algorithm->name);
    if (family < 0) continue;
    const int row = kRows[family];
    const bool low_latency = candidate.protocol == Protocol::kLowLatency;
    const int entry = low_latency ? plugin_abi::kLl : plugin_abi::kSimple;
    const auto cost = static_cast<float>(estimator.estimate(candidate, block_bytes).microseconds);
    if (named[row][entry] != nullptr && costs[row][entry] <= cost) continue;
    named[row][entry] = &candidate;
    costs[row][entry] = cost;
  }
  for (const int row : kRows) {  // one thing stands for both
    named[row][plugin_abi::kLl128] = named[row][plugin_abi::kLl];
    costs[row][plugin_abi::kLl128] = costs[row][plugin_abi::kLl];
  }
  return costs;
}

}  // namespace

const Advice& Adviser::advice(Collective collective, size_t block_bytes,
                              const std::vector<Candidate>& allowed, Estimator& estimator) {
  const std::optional<Function> function = function_of(collective);
  if (!function || site_.ranks < 2 || block_bytes == 0) return none_;
  const bool shared_out =
      collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  const size_t blocks = shared_out ? static_cast<size_t>(site_.ranks) : 1;
  const int index = std::min<int>(std::bit_width(block_bytes * blocks - 1), kSizes - 1);
  std::optional<Advice>& known = known_[*function][index];
  if (!known) {
    const size_t bytes = size_t{1} << index;
    known = ask(*function, bytes, std::max<size_t>(bytes / blocks, 1), allowed, estimator);
    if (known->given())
      log::info(-1, "tuner plugin {}: {} with {} ranks, up to {} bytes: {}", plugin_->name(),
                to_string(collective), site_.ranks, bytes, describe(known->candidate));
  }
  return *known;
}

Advice Adviser::ask(Function function, size_t bytes, size_t block_bytes,
                    const std::vector<Candidate>& allowed, Estimator& estimator) {
  Named named{};
  const CostTable before = costs_of(allowed, block_bytes, estimator, named);
  CostTable costs = before;
  if (!plugin_->ask(function, bytes, costs)) return {};
  bool changed = false;
  int algorithm = -1;
  const Candidate* best = nullptr;
  float least = 0;
  for (int a = 0; a < plugin_abi::kAlgorithms; ++a) {
    for (int p = 0; p < plugin_abi::kProtocols; ++p) {
      if (named[a][p] == nullptr) continue;
      const float cost = costs[a][p];
      changed |= cost != before[a][p];
      if (!(cost >= 0) || (best != nullptr && cost >= least)) continue;
      best = named[a][p];
      algorithm = a;
      least = cost;
    }
  }
  if (!changed || best == nullptr) return {};
  return {*best, slot_bytes(function, bytes, algorithm, *best)};
}

// What the plugin wants a slice's chunk to be, within what scratch has room for. Low-latency slots
// always have one size: they are memory that is never given back.
size_t Adviser::slot_bytes(Function function, size_t bytes, int algorithm,
                           const Candidate& candidate) {
  if (candidate.protocol != Protocol::kStaged || config_.slice_bytes > 0) return 0;
  const size_t own = choice_of(candidate, site_, config_, 0).slot_bytes;
  const size_t wanted = plugin_->chunk(function, bytes, algorithm, plugin_abi::kSimple, own);
  if (wanted == own || wanted == 0) return 0;
  const size_t most =
      std::clamp(kSlotsOfAll / static_cast<size_t>(site_.ranks), kSmallestSlot, kLargestSlot);
  // Powers of two, so that few plans are linked.
  return std::bit_floor(std::clamp(wanted, kSmallestSlot, most));
}

}  // namespace tessera
