// What a rank's own work costs in a simulation. What links cost (latency and bandwidth) is the
// graph's; this is everything else.
//
// A step of a lane, in time, with b the bytes of its chunks:
//
//   waits met | step_us | local work |==== bytes on the wire ====| signal_us each | next step
//                         (with `overlapped` the local work runs beside the wire)
//                                                                `-- latency --> the counter rises
//
// Local work is, for each local destination of a copy, b / copy_gbs, and for a reduction of k
// sources (k - 1) b / reduce_gbs. What goes to a peer or comes from it goes over the route between
// the two ranks instead, all peers of a step at once; a get waits for the latency twice. Puts do
// not wait for their latency: the next step starts when the last byte has left, and a signal takes
// the latency of the route to its owner, behind the data.
//
// Ranks on one core take turns step by step, and every change of rank costs switch_us.
// Thread safety: plain data.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::simulator {

inline constexpr double kBytesPerUs = 1000;  // of 1 GB/s

struct RankCost {
  double launch_us = 0;     // before the first step of a call: a kernel's launch, a call's checks
  double step_us = 0.05;    // decoding a step and looking at its waits
  double signal_us = 0.02;  // raising a counter
  double copy_gbs = 8;      // a lane's local copies, bytes written
  double reduce_gbs = 6;    // a lane's reductions, bytes of each source after the first
  double lane_gbs = 0;      // what a lane moves to or from all its peers at most; 0: no limit
  double switch_us = 2;     // to another rank on the same core
  double tile_us = 0;       // between arrivals of external counters: a compute kernel's tiles
  bool overlapped = false;  // local work and wire at once (many threads), or in turn (one)
  bool operator==(const RankCost&) const = default;
};

struct Cost {
  RankCost host;  // ranks on kCore and kCpu
  // Of the order of present accelerators: a thread block's share of memory bandwidth, and what a
  // launch and a flag in device memory cost.
  RankCost gpu = {.launch_us = 4,
                  .step_us = 0.5,
                  .signal_us = 0.2,
                  .copy_gbs = 1200,
                  .reduce_gbs = 900,
                  .lane_gbs = 0,
                  .switch_us = 0,
                  .tile_us = 0,
                  .overlapped = true};
  bool operator==(const Cost&) const = default;
};

// {"format": "tessera-cost", "version": 1, "host": {...}, "gpu": {...}} with the fields above.
std::string save_cost(const Cost& cost);

// Fields left out keep their defaults; an unknown field, a wrong type, a negative or infinite
// number and a bandwidth of 0 (but for lane_gbs) are errors that name the place.
Result<Cost> load_cost(std::string_view text);

// The first value that makes no sense, by name; empty: none. What load_cost() checks.
std::string fault_of(const Cost& cost);

}  // namespace tessera::simulator
