// Times calls: what a tournament asks for, and whoever can do it.
// Thread safety: one thread per object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "base/types.h"

namespace tessera::tune {

// Who can be timed: a communicator of its own that runs just one candidate, or chooses by itself.
struct Entrant {
  Config config;
  bool shareable = true;  // its buffers: memory that peers can map
};

// A batch of calls of float32, out of place.
struct Batch {
  Collective collective = Collective::kAllReduce;
  uint32_t entrant = 0;
  uint64_t block_bytes = 0;
  int32_t untimed = 0;  // calls before those that count
  int32_t calls = 1;    // 1 or more; fewer are timed if the untimed ones take very long
  int32_t pass = 0;     // decides the cores that the ranks sit on (cores.h)
};

inline constexpr double kLongCall = 4000;  // us: memory decides, and one untimed call suffices

// How many calls that take so long make a batch, in microseconds.
inline int calls_for(double call_us, double batch_us) {
  return static_cast<int>(std::clamp(batch_us / std::max(call_us, 0.01), 1.0, 1e6));
}

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  // Microseconds that one of the calls took, when all ranks run them one after another.
  virtual Result<double> time(const Batch& batch) = 0;
};

// Brings up `ranks` ranks for these entrants.
using Start =
    std::function<Result<std::unique_ptr<Stopwatch>>(int ranks, const std::vector<Entrant>&)>;

}  // namespace tessera::tune
