// Statistics of the per-iteration times (-I).
#pragma once

#include <vector>

namespace tessera::perf {

struct SampleStatistics {
  double min = 0, max = 0, average = 0, p50 = 0, p95 = 0, p99 = 0, deviation = 0;
};

// The first `skip` samples are left out, unless nothing would remain.
SampleStatistics statistics(const std::vector<double>& samples, int skip);

}  // namespace tessera::perf
