// The machine's own limits, probed in the same run, and the bound they give for a call.
//
// Bound of a call over n ranks: max(exchange if n > 1, (read + written) / traffic), where
//
// exchange: one-way latency of a cache line between two cores. Some rank needs a word of another.
//
// read, written: bytes that must at least be loaded and stored over all ranks, each input once and
// each output once (Collective::traffic). In place the same figure is used, although it may be
// less.
//
// traffic: bytes loaded plus stored per second by min(n, cores) cores, for a working set no larger
// than the call's: the best of copying (2 bytes per byte copied) and c = a + b (3 bytes per byte of
// result). In place also of c += a (3 bytes), which spares the load of lines that are overwritten.
//
// A bound is what the probes reached, not a law: fractions a little above 1 are possible where
// caches help.
#pragma once

#include <string>
#include <vector>

#include "common/collective.h"

namespace tessera::perf {

struct Bandwidth {
  size_t working_set = 0;                 // bytes per core
  double copy_one = 0, copy_all = 0;      // bytes copied per second: one core, all cores together
  double add_one = 0, add_all = 0;        // bytes of result per second of c = a + b in float
  double update_one = 0, update_all = 0;  // of c += a
};

struct Limits {
  int cores = 1;                      // that the system grants
  double exchange_seconds = 0;        // 0: one core only, not measured
  std::vector<Bandwidth> bandwidths;  // by rising working set

  double bound_seconds(const Traffic& traffic, int ranks, bool in_place) const;
  std::string describe() const;  // comment lines for the report
};

// Takes about a second and all cores; call it while the other processes sleep. Threads are pinned
// for its duration.
Limits probe_limits();

}  // namespace tessera::perf
