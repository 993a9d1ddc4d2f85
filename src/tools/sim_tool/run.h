// A simulation as tessera-sim runs it: a machine with ranks on it, and a plan over them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/status.h"
#include "simulator/path_routes.h"
#include "simulator/simulate.h"
#include "topology/graph.h"
#include "topology/paths.h"

namespace tessera::tools {

// A machine, or so many copies of it, with ranks placed on it. Stays where it was made: the paths
// refer to the graph.
struct Site {
  topology::Graph graph;
  std::unique_ptr<topology::Paths> paths;
  std::unique_ptr<simulator::PathRoutes> routes;
  std::vector<std::string> notes;  // topology::notes_on_places()
  std::string about;               // "4096 ranks on 64 hosts, each: pack:2 core:32"
  std::vector<int> host_of;        // by rank, also on one host

  int ranks() const { return routes->ranks(); }
};

// `from` as in describe_machine(); ranks 0: one for each place. A GPU holds one rank. What is odd in
// the description is printed to standard error. `in_order`: ranks are numbered along the first ring
// that a search finds, which communicators follow on a machine that a topology file describes.
Result<std::unique_ptr<Site>> make_site(const std::string& from, int hosts, int ranks,
                                        bool in_order);

// What is asked of a collective.
struct Call {
  Collective collective = Collective::kAllReduce;
  size_t bytes = 0;  // as the perf tests count them
  int root = 0;
  int chunks = 0;    // per block of pipelined trees and chains; 0: by the block's length
  size_t slice = 0;  // bytes of a block that one pass moves; 0: all
};

simulator::Message message_of(const Call& call, int ranks, Reach reach);
int chunks_of(const Call& call, int ranks);

// How large a plan of so many ranks would be: steps and what they name. Of plans that do not
// rotate it is estimated from smaller ones, for building them may already be too much.
double parts_of(const Algorithm& algorithm, const Call& call, const Site& site);
// Of a plan that is simulated at all. One that does not rotate is built as a whole, at some 120 bytes
// for each part: 6 GB; of one that rotates, a rank's program.
inline double most_parts(const Algorithm& algorithm) { return algorithm.rotates ? 400e6 : 48e6; }
inline constexpr double kMostTableParts = 12e6;  // of one among others that does not rotate: 1.5 GB

Result<simulator::Source> source_of(const Algorithm& algorithm, const Call& call, const Site& site);
// A plan from a file, verified.
Result<simulator::Source> source_of(const std::string& plan_file, const Call& call);

// What is kept of a simulation, besides how long it takes and how busy links are.
enum class Detail : uint8_t { kNone, kCriticalPath, kTimeline };

// Simulates; shows progress on a terminal if it takes more than a second.
// The critical path is left out where it would need gigabytes; a timeline has it, too.
Result<simulator::Outcome> run(const Site& site, const simulator::Source& source,
                               const simulator::Message& message, const simulator::Cost& cost,
                               Detail detail);

}  // namespace tessera::tools
