#include "fused/ideal.h"

#include <algorithm>

namespace perf::fused {

double Schedule::reduce_scatter() const {
  if (t <= g) return compute();
  return std::max(compute(), transfer() + std::max(0.0, 2 * g - t));
}

double Schedule::chain() const { return reduce_scatter() + std::max(compute(), transfer() + g); }

double Schedule::without_arrival() const { return std::max(compute(), t) + transfer() - t; }

}  // namespace perf::fused
