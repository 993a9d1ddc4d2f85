// What a rank sees of its team: a little memory that all its processes share, and a barrier.
// Thread safety: one thread per process.
#pragma once

#include <pthread.h>

#include "base/status.h"
#include "comm/bootstrap.h"

namespace tessera::tune {

// In memory that all processes of the team share; the barrier orders all accesses.
struct Shared {
  static constexpr int kMostRanks = 64;
  pthread_barrier_t barrier;
  double values[kMostRanks];
  UniqueId id;
  int id_made;
};

// Ranks call the members in the same order; none calls one again after an error.
class Seat {
 public:
  Seat(Shared* shared, int rank, int ranks) : shared_(shared), rank_(rank), ranks_(ranks) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // All ranks meet. After it everybody sees what all wrote to the shared memory before.
  void meet() { pthread_barrier_wait(&shared_->barrier); }
  // The mean over all ranks of what each passes; the same for all.
  double mean(double value);
  // Rank 0's new unique id, for all.
  Result<UniqueId> new_id(const Config& config);

 private:
  Shared* shared_;
  int rank_, ranks_;
};

}  // namespace tessera::tune
