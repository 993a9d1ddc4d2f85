#include "tools/tune_tool/seat.h"

#include <algorithm>

namespace tessera::tune {

double Seat::span(Clock::time_point began, Clock::time_point ended) {
  shared_->begins[rank_] = began;
  shared_->ends[rank_] = ended;
  meet();
  for (int rank = 0; rank < ranks_; ++rank) {
    began = std::min(began, shared_->begins[rank]);
    ended = std::max(ended, shared_->ends[rank]);
  }
  meet();  // nobody writes the next times before all have read
  return std::chrono::duration<double, std::micro>(ended - began).count();
}

Result<UniqueId> Seat::new_id(const Config& config) {
  Status status;
  if (rank_ == 0) {
    Result<UniqueId> id = create_unique_id(config);
    shared_->id_made = id.ok() ? 1 : 0;
    if (id.ok()) shared_->id = id.value();
    status = id.status();
  }
  meet();
  const bool made = shared_->id_made != 0;
  const UniqueId id = shared_->id;
  meet();
  if (made) return id;
  return status.ok() ? Status(Code::kRemote, "rank 0 could not make a unique id") : status;
}

}  // namespace tessera::tune
