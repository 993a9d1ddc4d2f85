// Every algorithm of the library: ranks and chunks in, Plan out. No bytes, no addresses, no
// transports.
//
// Each algorithm has a file of its own with prose, a picture and its cost line. Two ways to reach a
// peer's data:
//   staged  peers touch only each other's scratch; user buffers are read and written by their
//           owner. Works everywhere, slices pipeline.
//   direct  peers read and write each other's input and output (mapped or single-copy); one pass,
//           no scratch for the data.
// Staged plans must not touch a peer's input or output. Direct plans begin every access to a peer's
// user buffers after a signal "I have entered" of its owner and end before its owner leaves.
//
// All plans verify (tests do so for 1 to 64 ranks, all roots up to 8 ranks) and also at ranks == 1.
// Those for several hosts are staged, and put across hosts but never get.
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace tessera {

enum class Reach : uint8_t { kStaged, kDirect };

struct AlgorithmParams {
  int ranks = 1;
  int root = -1;          // for rooted collectives
  int scratch_depth = 2;  // copies of scratch, for staged plans: how many passes may be under way
  int chunks = 1;         // per block of pipelined trees and chains; others choose by themselves
  // Of algorithms that rotate: only rank 0's program is built, the others stay empty. No plan to
  // run, but all that a simulation of thousands of ranks needs.
  bool first_only = false;
  // By rank: the host it is on, named by any number; empty: all are on one. Of plans for several
  // hosts, others ignore it.
  std::vector<int> host_of = {};
  // Each rank once, so that those that follow each other are near each other: how rings, chains,
  // trees and what goes from host to host take them. Empty: 0, 1, ... Not with first_only.
  std::vector<int> order = {};
};

int count_hosts(const std::vector<int>& host_of);  // how many different ones; 1 if empty

struct Algorithm {
  std::string_view name;  // "ring", "one-hop", ...: what TESSERA_ALGO and messages call it
  Collective collective;
  Reach reach;
  // Single-hop or few-hop exchange whose puts may carry data and flag in one cache line (link-time
  // LL protocol).
  bool low_latency;
  bool (*fits)(int ranks);
  Plan (*build)(const AlgorithmParams& params);
  std::string_view cost;  // one line, alpha-beta-gamma with n ranks and S bytes
  // Every rank's program is rank 0's with ranks, blocks and chunks shifted round by its number.
  bool rotates = false;
  // Made for ranks on two or more hosts: its plans follow from AlgorithmParams::host_of.
  bool across_hosts = false;
  // Direct, and moves by puts alone: for peers whose buffers can be written but not read.
  bool puts = false;

  bool supports(int ranks, int hosts = 1) const {
    return fits(ranks) && (!across_hosts || hosts > 1);
  }
};

// All algorithms of one collective, in order of preference for small messages first.
std::span<const Algorithm> algorithms(Collective collective);

// nullptr when there is none of that name and reach.
const Algorithm* find_algorithm(Collective collective, std::string_view name, Reach reach);

}  // namespace tessera
