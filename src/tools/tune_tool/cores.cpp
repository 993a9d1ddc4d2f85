#include "tools/tune_tool/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "topology/cpu_set.h"

namespace tessera::tune {
namespace {

constexpr int kWays = 3;

}  // namespace

Cores::Cores() : allowed_(topology::CpuSet::allowed().list()) {}

int Cores::place(int rank, int ranks, int cores, int pass) {
  if (ranks <= cores) return rank;
  const int way = pass % kWays;
  if (way == 1) return rank % cores;
  const int shift = way == 0 ? 0 : std::max(1, ranks / cores / 2);
  return static_cast<int>(int64_t{(rank + shift) % ranks} * cores / ranks);
}

void Cores::take(int rank, int ranks, int pass) const {
  if (allowed_.empty()) return;
  const int place_here = place(rank, ranks, static_cast<int>(allowed_.size()), pass);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(allowed_[static_cast<size_t>(place_here)], &one);
  sched_setaffinity(0, sizeof(one), &one);  // without it: measured a little worse
}

}  // namespace tessera::tune
