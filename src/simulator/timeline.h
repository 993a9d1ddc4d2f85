// Pictures of a simulation that was run with `trace`: what every lane did and what every link
// carried, over time.
//
//   rank 0 lane 0  |[put]   [reduce] [put]            |      a bar is a step, coloured by its kind
//   rank 1 lane 0  |     [reduce] [put]               |
//   gpu0 -> gpu1   |_####_______####__                |      filled: how much of the link is in use
//                  +-----+-----+-----+-----+-----> us
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "simulator/simulate.h"

namespace tessera::simulator {

// For chrome://tracing and ui.perfetto.dev: a process per rank, a thread per lane, a complete event
// ("X") per step, and for each link that was used a counter with its GB/s.
std::string to_trace_json(const Timeline& timeline, const Source& source,
                          const topology::Graph& graph);

struct SvgLimits {
  size_t lanes = 64;  // rows; more are left out, and a note says so
  size_t links = 24;  // rows, of those that carried most
  size_t bars = 20000;
};

std::string to_svg(const Timeline& timeline, const Source& source, const topology::Graph& graph,
                   const SvgLimits& limits = {});

}  // namespace tessera::simulator
