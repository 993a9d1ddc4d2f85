#include "common/statistics.h"

#include <algorithm>
#include <cmath>

namespace tessera::perf {

SampleStatistics statistics(const std::vector<double>& samples, int skip) {
  SampleStatistics s;
  if (samples.empty()) return s;
  const auto from = static_cast<size_t>(skip) < samples.size() ? skip : 0;
  std::vector<double> sorted(samples.begin() + from, samples.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  const auto percentile = [&](size_t p) { return sorted[std::min(n - 1, (n * p + 99) / 100 - 1)]; };
  s.min = sorted.front();
  s.max = sorted.back();
  s.p50 = sorted[n / 2];
  s.p95 = percentile(95);
  s.p99 = percentile(99);
  for (const double value : sorted) s.average += value / static_cast<double>(n);
  double variance = 0;
  for (const double value : sorted)
    variance += (value - s.average) * (value - s.average) / static_cast<double>(n);
  s.deviation = std::sqrt(variance);
  return s;
}

}  // namespace tessera::perf
