// Arbitration between computing and communicating where both use one thread: what share of a
// producer's time its reports of tiles may spend on the steps of the plan.
//
//   compute ... report | steps: t | compute, at least t * (100 - share) / share ... report | steps
//
// Computing is not starved: after steps that took t, reports move no data for as long as the share
// says. Communication is not: a look at it comes with every chunk that is complete, and with every
// `every`-th tile of a chunk; once a step has begun it is finished. A thread that waits is not
// computing: what it spends is not counted.
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>

namespace tessera {

struct BudgetOptions {
  int share =
      50;  // percent of a producer's time; 0: reports never move data; 100: whenever they can
  int every = 16;  // tiles of a chunk between two looks; a power of two
};

class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  void set(const BudgetOptions& options) { options_ = options; }
  const BudgetOptions& options() const { return options_; }

  bool allows(Clock::time_point now) const { return options_.share > 0 && now >= next_; }
  void spent(Clock::time_point from, Clock::time_point to) {
    if (options_.share > 0) next_ = to + (to - from) * (100 - options_.share) / options_.share;
  }

 private:
  BudgetOptions options_;
  Clock::time_point next_{};
};

}  // namespace tessera
