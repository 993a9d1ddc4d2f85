// What tessera-sim prints of a simulation. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "simulator/simulate.h"
#include "tools/sim_tool/run.h"

namespace tessera::tools {

// As the perf tests define them; 0 where nothing moves.
struct Bandwidth {
  double algorithm = 0, bus = 0;  // GB/s
};
Bandwidth bandwidth_of(const Call& call, int ranks, double us);

// Times, busiest links and critical path of one simulation.
std::string report(const Site& site, const Call& call, const simulator::Source& source,
                   const simulator::Outcome& outcome);

struct Row {
  std::string name, reach;
  simulator::Outcome outcome;
  std::string why_not;  // empty: it was simulated
};
// Fastest first, then those that were left out.
std::string table(const Site& site, const Call& call, std::vector<Row> rows);

// Algorithms with their cost lines, of one collective or of all.
std::string list_algorithms(const Collective* only);

const char* to_word(Reach reach);

}  // namespace tessera::tools
