// What a rank sees of its team: a little memory that all its processes share, and a barrier.
// Thread safety: one thread per process.
#pragma once

#include <pthread.h>

#include <chrono>

#include "base/status.h"
#include "comm/bootstrap.h"

namespace tessera::tune {

// In memory that all processes of the team share; the barrier orders all accesses.
struct Shared {
  static constexpr int kMostRanks = 64;
  pthread_barrier_t barrier;
  std::chrono::steady_clock::time_point begins[kMostRanks], ends[kMostRanks];
  UniqueId id;
  int id_made;
};

// Ranks call the members in the same order; none calls one again after an error.
class Seat {
 public:
  using Clock = std::chrono::steady_clock;  // one for all processes of a host

  Seat(Shared* shared, int rank, int ranks) : shared_(shared), rank_(rank), ranks_(ranks) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // All ranks meet. After it everybody sees what all wrote to the shared memory before.
  void meet() { pthread_barrier_wait(&shared_->barrier); }
  // Microseconds from when the first rank began to when the last one ended; the same for all. A
  // rank's own time is less: it begins late where another has its core, and ends early where it may
  // run ahead.
  double span(Clock::time_point began, Clock::time_point ended);
  // Rank 0's new unique id, for all.
  Result<UniqueId> new_id(const Config& config);

 private:
  Shared* shared_;
  int rank_, ranks_;
};

}  // namespace tessera::tune
