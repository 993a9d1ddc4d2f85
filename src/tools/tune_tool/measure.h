// Times all candidates of a collective, side by side, in the processes of a team.
#pragma once

#include <span>
#include <vector>

#include "comm/communicator.h"
#include "tools/tune_tool/team.h"
#include "tuner/candidate.h"

namespace tessera::tune {

struct Agenda {
  Collective collective = Collective::kAllReduce;
  std::vector<size_t> block_bytes;  // ascending
  std::vector<Candidate> candidates;
  bool automatic = false;  // also what the tuner chooses by itself, as last column
  double batch_us = 3000;  // length of a batch; at least one call
  int rounds = 3;          // batches of each, alternating; the median counts
  double hopeless = 3;     // so many times slower than the best twice in a row: left out
  Config config;           // profile of the automatic one included
};

// Runs in every rank. Reports, for each size and each candidate (and the automatic choice), the
// time of a call in microseconds; 0: not measured.
Status measure(Seat& seat, const Agenda& agenda);

}  // namespace tessera::tune
