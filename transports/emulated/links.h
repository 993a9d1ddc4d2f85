// The links between ranks, as a transport emulates them: what bytes pass on their way from each
// rank to each other, and how fast.
//
//   rank 0 --[line 0: 10 GB/s]--.            .--[line 3: 10 GB/s]-- rank 2
//                                >--(switch)-<
//   rank 1 --[line 1: 10 GB/s]--'            '--[line 4: 10 GB/s]-- rank 3
//
// A line has one direction and carries one message after the other. Paths that name the same line
// share it. A rank whose device moves less the more peers it talks to (fan-out limit) has one more
// line for what it sends and one for what it receives.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "topology/graph.h"

namespace tessera::emulated {

struct Line {
  std::string name;  // "rank 3 sends", "gpu3 -> nvswitch0"; on several hosts "host 1: ..."
  // Bytes per nanosecond (= GB/s), all users together, by the number of peers that use it at a time:
  // entry k - 1 for k peers, the last one for more. One entry: their number does not matter.
  std::vector<double> rates;

  double rate(size_t peers) const {
    return rates[peers == 0 ? 0 : (peers < rates.size() ? peers : rates.size()) - 1];
  }
};

struct Hop {
  int line = 0;
  int peer = 0;  // whom a line with several rates counts this path for
};

struct Way {
  std::vector<Hop> hops;  // empty: both ranks sit at one place
  std::chrono::nanoseconds latency{0};
};

struct Links {
  int ranks = 0;
  std::vector<Line> lines;
  std::vector<Way> ways;   // from * ranks + to
  std::vector<int> hosts;  // per rank: the described host it sits on, counted from 0

  const Way& way(int from, int to) const {
    return ways[static_cast<size_t>(from) * static_cast<size_t>(ranks) + static_cast<size_t>(to)];
  }
  // Of one flow that meets nobody, in bytes per nanosecond; infinite where there is no line.
  double rate(int from, int to) const;
};

// Each rank sends and receives at `rate` (bytes/ns) through links of its own. `fan_out`: shares of
// it by number of peers, each in (0, 1]; empty: all of it, always.
Links uniform_links(int ranks, double rate, std::chrono::nanoseconds latency,
                    const std::vector<double>& fan_out = {});

// Ranks on nodes of a graph, along the topology's best paths. Error: two ranks are not connected.
Result<Links> links_on(const topology::Graph& graph, const std::vector<int>& node_of_rank);

// All rates divided and all latencies multiplied by `factor`.
Links slowed(Links links, double factor);

}  // namespace tessera::emulated
