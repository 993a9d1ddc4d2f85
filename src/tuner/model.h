// The cost of a plan from its shape: the longest chain of messages and the bytes that the busiest
// rank moves, times default costs of a host. Right in order of magnitude; tessera-tune knows better.
//
//   time = call + meeting + hops * hop + moved * bytes / bandwidth
//        + crossings * latency + messages * message + carried * bytes / network bandwidth
//
// hops: messages that wait for each other, from the first step to the last of one pass. moved:
// blocks written by the busiest rank; ranks that share a core share its bandwidth. The second line
// is that of several hosts, with Site::network: crossings are the hops between hosts, messages those
// that the busiest rank sends to and gets from other hosts, carried the blocks that leave or enter
// the busiest host.
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
  double crossings = 0, messages = 0, carried = 0;
};

// `host_of` as in AlgorithmParams.
PlanWork work_of(const Plan& plan, const std::vector<int>& host_of = {});

// `cores`: that the ranks share.
double model_time(const PlanWork& work, Protocol protocol, const Site& site, size_t block_bytes,
                  const HostCosts& costs = {});

}  // namespace tessera
