// What TESSERA_EMULATE says: which links to emulate.
//
//   uniform:bandwidth=10GB/s,latency=5us            every rank has a link of its own to a switch
//   uniform:bandwidth=1GB/s,latency=5us,fan_out=100/95/90    ... percent by number of peers
//   topo.xml                                        a description as tessera-topo --from reads it
//   topo.xml,hosts=2,slower=40                      two of them; all links 40 times slower
//   pack:2 core:8 pu:1                              hwloc's synthetic form
//
// Units: B/s, kB/s, MB/s, GB/s (powers of 1000), Gb/s (bits); ns, us, ms. A bandwidth counts per
// direction. `slower` may also be given with `uniform`. A comma ends the description, so that a
// file's name may not contain one.
//
// Thread safety: pure functions but for reading the file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/emulated/links.h"

namespace tessera::emulated {

struct Description {
  std::string machine;  // file or synthetic text; empty: uniform
  double rate = 0;      // uniform: bytes per nanosecond
  std::chrono::nanoseconds latency{0};
  std::vector<double> fan_out;  // uniform: shares by number of peers
  int hosts = 1;
  double slower = 1;
};

// Errors (kInvalidUsage) quote the text, the place in it, and say what is allowed there.
Result<Description> parse(const std::string& text);

// Ranks sit where the description states them, else on GPUs, else on cores, host by host. Errors
// begin with "TESSERA_EMULATE"; also if there are fewer GPUs than ranks.
Result<Links> links_of(const std::string& text, int ranks);

// What ranks compare, besides the text: "digest 0123456789abcdef" of the file that it names; "none"
// if it names none that can be read.
std::string contents_digest(const std::string& text);

}  // namespace tessera::emulated
