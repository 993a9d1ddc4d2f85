// A plan decoded for the simulation: flat arrays of small PODs, a step a few dozen bytes.
//
// Only what costs time is kept: which peers a step's data goes to and comes from, how many local
// copies and sums it makes, and its waits and signals. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::simulator {

struct WaitCode {
  uint32_t counter, increment, lag;
  uint64_t per_pass;  // sum of all signals to the counter in one pass
};

struct SignalCode {
  uint32_t rank, counter, increment;
};

struct StepCode {
  uint32_t first_wait, first_signal, first_peer;
  uint16_t waits, signals;
  uint16_t puts, gets;        // peers: first those written to, then those read from
  uint16_t copies, combines;  // local destinations of a copy; sources after the first
  uint32_t chunk, chunks;
  const char* name;  // step_name()
};

struct LaneCode {
  uint32_t first_step, steps;
};

// Counters that a compute kernel raises.
struct ExternalCode {
  uint32_t counter, arrivals;
};

struct ProgramCode {
  uint32_t first_lane, lanes;
  uint32_t first_external, externals;
  uint32_t counters;
};

struct PlanCode {
  uint32_t chunks_per_block = 1;
  uint32_t chunk_shift = 0;  // chunks that a rank's program lies after that of the rank before
  std::vector<ProgramCode> programs;
  std::vector<LaneCode> lanes;
  std::vector<StepCode> steps;
  std::vector<WaitCode> waits;
  std::vector<SignalCode> signals;
  std::vector<uint32_t> peers;
  std::vector<ExternalCode> externals;
};

}  // namespace tessera::simulator
