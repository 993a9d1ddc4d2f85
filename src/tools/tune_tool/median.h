// Medians of what was timed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tessera::tune {

// Of at least one; the upper of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of a[i] / b[i], as far as there are both.
inline double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

}  // namespace tessera::tune
