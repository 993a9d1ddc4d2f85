#include "tools/tune_tool/entrants.h"

#include <cstdint>
#include <utility>

namespace tessera::tune {

Entrant entrant_of(const Field& field, size_t who, const Config& base) {
  if (who == field.automatic()) return {base, true};
  const Candidate& candidate = field.contestants[who].candidate;
  const bool shareable = candidate.protocol != Protocol::kSingleCopy;
  Config config = neutral(base);
  config.algorithm = candidate.algorithm->name;
  config.low_latency_max =
      candidate.protocol == Protocol::kLowLatency ? static_cast<int64_t>(field.low_latency_cap) : 0;
  config.share_memory = shareable;
  if (candidate.slot_bytes > 0) config.slice_bytes = static_cast<int64_t>(candidate.slot_bytes);
  return {std::move(config), shareable};
}

std::vector<Entrant> entrants_of(const Field& field, const Config& base) {
  std::vector<Entrant> result;
  const size_t count = field.contestants.size() + (field.judged() ? 1 : 0);
  for (size_t who = 0; who < count; ++who) result.push_back(entrant_of(field, who, base));
  return result;
}

}  // namespace tessera::tune
