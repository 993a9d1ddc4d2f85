// The cost of a plan from its shape: the longest chain of messages and the bytes that the busiest
// rank moves, times default costs of a host. Right in order of magnitude; tessera-tune knows better.
//
//   time  = call + meeting + hops * hop + strides * (hop + node latency) + crossings * latency
//         + first + rest
//   first = max(max(moved, path) / bandwidth, bridged / node bandwidth) * slice
//         + messages * message + carried * slice / network bandwidth
//   rest  = max((passes - 1) * (steps * hop + messages * message) + moved * left / bandwidth,
//               bridged * left / node bandwidth, carried * left / network bandwidth),
//               left = bytes - slice
//
// A pass moves a slice of each block. The first goes all the way before anything is there; of later
// ones the bottleneck alone counts, for the others work meanwhile. So small slices cost steps, and
// large ones keep ranks waiting for the first.
// hops: messages that wait for each other, from the first step to the last of one pass. moved:
// blocks written by the busiest rank, in as many steps; ranks that share a core share its
// bandwidth. path: blocks moved one after the other, by whomever. With several NUMA nodes and
// Site::between_nodes: strides are the hops between nodes of a host, bridged the blocks that leave
// or enter the busiest node. With several hosts and Site::network: crossings are the hops between
// hosts, messages those that the busiest rank sends to and gets from other hosts, carried the
// blocks that leave or enter the busiest host. Both are what the description of the machine says of
// its links, where there is one (tuner/seats.h).
// Thread safety: pure functions.
#pragma once

#include "tuner/candidate.h"

namespace tessera {

// Microseconds and bytes per microsecond, on a present-day server core.
struct HostCosts {
  double call = 0.1;              // checks and decoding
  double hop = 0.15;              // a line from core to core
  double crowded_hop = 1.2;       // a hop that first needs a switch to the other rank
  double copy = 10e3;             // from another core's cache
  double reduce = 8e3;            // one source
  double single_copy = 5e3;       // through the kernel
  double single_copy_call = 1.5;  // what it costs to begin
};

// One pass of a plan.
struct PlanWork {
  double hops = 0;
  double copied = 0;   // blocks, by the busiest rank
  double reduced = 0;  // blocks read by reductions, by the busiest rank
  double moves = 0;    // data steps of the busiest rank
  double path = 0;     // blocks copied or read by reductions, one after the other
  double crossings = 0, messages = 0, carried = 0;
  double strides = 0, bridged = 0;
  int chunks = 1;  // that a block is cut into
};

// Where ranks are counts at a site, and what lies between NUMA nodes.
PlanWork work_of(const Plan& plan, const Site& site = {});

// `slot_bytes`: what one pass moves of a chunk; 0: all. Microseconds.
double model_time(const PlanWork& work, Protocol protocol, const Site& site, size_t block_bytes,
                  size_t slot_bytes = 0, const HostCosts& costs = {});

}  // namespace tessera
