// Times all candidates of a collective, side by side, in the processes of a team.
#pragma once

#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "tools/tune_tool/team.h"
#include "tuner/candidate.h"

namespace tessera::tune {

// Bytes of the blocks that a candidate is timed with.
struct Span {
  size_t least = 0, most = std::numeric_limits<size_t>::max();
  bool contains(size_t block_bytes) const { return least <= block_bytes && block_bytes <= most; }
};

inline constexpr size_t kAlwaysTimed = 4096;  // bytes of a block

struct Agenda {
  Collective collective = Collective::kAllReduce;
  std::vector<size_t> block_bytes;    // ascending
  std::vector<Candidate> candidates;  // other slices follow the rule's of the same algorithm
  std::vector<Span> spans;            // by candidate
  // Who is judged, by size: what the tuner chooses, an index of `candidates`. Empty: nobody.
  std::vector<size_t> chosen;
  double batch_us = 3000;  // length of a batch; at least one call
  // When all should have been measured. Batches are then as long as the time that is left allows, and
  // the largest blocks are left out for which it does not suffice; those up to kAlwaysTimed bytes
  // never, so that it may take a little longer.
  std::optional<std::chrono::steady_clock::time_point> until;
  int rounds = 3;       // batches of each, alternating; the median counts
  double hopeless = 3;  // so many times slower than the best twice in a row: left out
  // Other slices are timed if, at the next larger size, the rule's came so near the best staged
  // candidate, until they took so many times as long as the rule's twice in a row.
  double promising = 1.25, worse = 1.25;
  Config config;  // profile of the automatic one included
};

// How a size was judged. The best of the contest, the chosen candidate and a communicator that
// chooses by itself run once more, in turns: the least of many medians is less than that candidate
// takes as a rule. Times are medians, ratios the medians of each turn's, since machines change their
// speed.
struct Verdict {
  size_t best = 0;  // index of the agenda's candidates
  // Microseconds of a call; 0: not measured.
  double best_us = 0, chosen_us = 0, automatic_us = 0;
  double choice = 0, automatic = 0;  // the chosen candidate and the communicator over the best
};
inline constexpr size_t kVerdictNumbers = 6;
// The i-th of an agenda that judges, from what measure() reports.
Verdict verdict(std::span<const double> reported, size_t i);

// Runs in every rank. Reports for each size the time of a call of each candidate in microseconds
// (0: not measured); if choices are judged, a verdict for each size instead.
Status measure(Seat& seat, const Agenda& agenda);

}  // namespace tessera::tune
