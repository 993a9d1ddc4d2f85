#include "fusion/tracker.h"

#include <fmt/format.h>

namespace tessera {
namespace {

constexpr size_t kMostNamed = 8;

}  // namespace

Tracker::Tracker(const TileGrid& grid, const RowChunks& chunks, int32_t parts,
                 PaddedCounter* counters, int count, uint64_t first_pass)
    : grid_(grid),
      chunks_(chunks),
      parts_(static_cast<uint64_t>(parts)),
      across_(grid.across()),
      counters_(counters),
      first_pass_(first_pass),
      tallies_(count > 0 ? static_cast<size_t>(grid.tiles()) : 0) {
  for (int chunk = 0; chunk < count; ++chunk)
    arrivals_.push_back(static_cast<uint64_t>(grid.tiles_over(chunks.rows_of(chunk))));
}

Tracker::Report Tracker::report(int64_t row, int64_t col, uint64_t launch) {
  const uint64_t limit = parts_ * (launch + 1);
  const uint64_t part = tallies_[static_cast<size_t>(row * across_ + col)].add(limit);
  if (part == 0) return Report::kTwice;
  if (part != limit) return Report::kCounted;
  const RowRange rows = grid_.rows_of(row);
  const int last = chunks_.chunk_of(rows.end - 1);
  bool complete = false, look = false;
  for (int chunk = chunks_.chunk_of(rows.begin); chunk <= last; ++chunk) {
    const uint64_t sum = counters_[chunk].counter.publish_and_tell(1);
    look |= (sum & look_mask_) == 0;
    complete |= sum == arrivals_[static_cast<size_t>(chunk)] * (first_pass_ + launch + 1);
  }
  if (complete) return Report::kComplete;
  return look ? Report::kLook : Report::kCounted;
}

std::string Tracker::missing(uint64_t launch) const {
  std::string names;
  size_t missing = 0;
  for (size_t tile = 0; tile < tallies_.size(); ++tile) {
    if (tallies_[tile].value() >= parts_ * (launch + 1)) continue;
    const auto at = static_cast<int64_t>(tile);
    if (++missing <= kMostNamed) names += fmt::format(" ({},{})", at / across_, at % across_);
  }
  if (missing == 0) return {};
  return fmt::format("{} of {} tiles are missing:{}{}", missing, tallies_.size(), names,
                     missing > kMostNamed ? " ..." : "");
}

bool Tracker::clean(uint64_t launches) const {
  for (const Tally& tally : tallies_)
    if (tally.value() != parts_ * launches) return false;
  return true;
}

uint64_t Tracker::arrived() const {
  uint64_t sum = 0;
  for (size_t chunk = 0; chunk < arrivals_.size(); ++chunk) sum += counters_[chunk].counter.value();
  return sum;
}

}  // namespace tessera
