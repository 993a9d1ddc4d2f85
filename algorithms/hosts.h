// Which ranks share a host, as the plans for several hosts need it.
//
//      host_of  0 0 1 0 1        host 0: ranks 0 1 3        host 1: ranks 2 4
//                                place   0 1 2              place   0 1
//
// Hosts may have different numbers of ranks, in any numbering. Pure functions.
#pragma once

#include <vector>

#include "algorithms/exchange.h"

namespace tessera {

struct Hosts {
  std::vector<int> of;  // by rank: its host, from 0, as AlgorithmParams::order meets them
  std::vector<std::vector<int>> ranks;  // by host, ascending

  int count() const { return static_cast<int>(ranks.size()); }
  int size(int host) const { return static_cast<int>(ranks[host].size()); }
  // The rank with which a host takes part in rail `rail`: equal places where hosts are of one size.
  int on_rail(int host, int rail) const { return ranks[host][rail % size(host)]; }
  int leader(int host) const { return ranks[host].front(); }
  bool leads(int rank) const { return leader(of[rank]) == rank; }
  int largest() const;  // ranks of the largest host
  // The ranks of a host as runs of consecutive numbers.
  std::vector<BlockRun> runs(int host) const;
};

// Without a layout all ranks are on one host.
Hosts hosts_of(const AlgorithmParams& params);

}  // namespace tessera
