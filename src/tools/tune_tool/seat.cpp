#include "tools/tune_tool/seat.h"

namespace tessera::tune {

double Seat::mean(double value) {
  shared_->values[rank_] = value;
  meet();
  double sum = 0;
  for (int rank = 0; rank < ranks_; ++rank) sum += shared_->values[rank];
  meet();  // nobody writes the next value before all have read
  return sum / ranks_;
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
