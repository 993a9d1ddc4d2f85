// The worker threads of all processes acting together: barriers and combined values.
//
// Thread safety: every thread of the process calls the same members in the same order with its own
// number; thread 0 is the main thread, which alone speaks to the other processes.
#pragma once

#include <barrier>
#include <functional>
#include <span>
#include <vector>

#include "common/world.h"

namespace tessera::perf {

class Team {
 public:
  Team(World& world, int threads)
      : world_(world), threads_(threads), barrier_(threads), slots_(static_cast<size_t>(threads)) {}

  void barrier(int thread);

  // Element by element over all threads of all processes. kFirst takes thread 0 of process 0.
  void combine(int thread, std::span<double> values, Combine how);
  double combine(int thread, double value, Combine how);
  double average(int thread, double value);

  // Runs `action` in thread 0 while the others wait.
  void alone(int thread, const std::function<void()>& action);

  int threads() const { return threads_; }
  World& world() { return world_; }

 private:
  void meet() {
    if (threads_ > 1) barrier_.arrive_and_wait();
  }

  World& world_;
  int threads_;
  std::barrier<> barrier_;
  std::vector<std::span<double>> slots_;
};

}  // namespace tessera::perf
