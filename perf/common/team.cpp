#include "common/team.h"

#include <algorithm>

namespace tessera::perf {

void Team::barrier(int thread) {
  meet();
  if (thread == 0) world_.barrier();
  meet();
}

void Team::combine(int thread, std::span<double> values, Combine how) {
  slots_[static_cast<size_t>(thread)] = values;
  meet();
  if (thread == 0) {
    for (int t = 1; t < threads_; ++t) {
      for (size_t i = 0; i < values.size(); ++i) {
        const double other = slots_[static_cast<size_t>(t)][i];
        if (how == Combine::kSum) values[i] += other;
        if (how == Combine::kMin) values[i] = std::min(values[i], other);
        if (how == Combine::kMax) values[i] = std::max(values[i], other);
      }
    }
    world_.combine(values, how);
    for (int t = 1; t < threads_; ++t) {
      std::copy(values.begin(), values.end(), slots_[static_cast<size_t>(t)].begin());
    }
  }
  meet();
}

double Team::combine(int thread, double value, Combine how) {
  combine(thread, std::span<double>(&value, 1), how);
  return value;
}

double Team::average(int thread, double value) {
  return combine(thread, value, Combine::kSum) / (threads_ * world_.processes());
}

void Team::alone(int thread, const std::function<void()>& action) {
  meet();
  if (thread == 0) action();
  meet();
}

}  // namespace tessera::perf
