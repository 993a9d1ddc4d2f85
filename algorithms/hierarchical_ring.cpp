// Rings over hosts: a host sends to the next and gets from the one before, whatever their number.
//
// The sum of a chunk starts at the host after the chunk's own and goes round to it; at each host the
// chunk's rail adds the sum of its ranks. The result goes round likewise, and each host hands it
// out.
//
//      chunk of host 0, 3 hosts       host 1 --> host 2 --> host 0         sums
//      (. : ranks of a host)           ..         ..         ..
//                                     host 0 --> host 1 --> host 2         results
//                                      ..         ..         ..
//
// As many chunks start at each host. On the link between two hosts runs the least that is possible
// for all-reduce; the number of hops grows with the hosts, which slices hide. An exchange
// (hierarchical.cpp) has as many bytes and fewer hops, but every host sends to every other, which
// switches with shared uplinks like less.
//
// Broadcast and reduce: a chain of hosts, cut at the root, with one chunk for each rail.
//
// With h hosts of l ranks:
// Cost: all-reduce      2 alpha + 2 (h-1) alpha' + 2 (l-1)/l S beta + 2 (h-1)/h S beta' + S gamma
//       all-gather      alpha + (h-1) alpha' + (h-1)/h S (beta + beta')
//       reduce-scatter  alpha + (h-1) alpha' + (l-1)/l S beta + (h-1)/h S beta' + S gamma
//       broadcast       2 alpha + (h-1) alpha' + S (beta + beta')
//       reduce          2 alpha + (h-1) alpha' + S (beta + beta' + gamma)
#include "algorithms/families.h"
#include "algorithms/host_trees.h"

namespace tessera {
namespace {

constexpr const char* kHierarchicalRingName = "hierarchical-ring";
constexpr HostShape kRing{chain_to_root, chain_from_root};

}  // namespace

Plan hierarchical_ring_all_reduce(const AlgorithmParams& params) {
  return all_reduce_over(kHierarchicalRingName, kRing, params);
}

Plan hierarchical_ring_all_gather(const AlgorithmParams& params) {
  return all_gather_over(kHierarchicalRingName, kRing, params);
}

Plan hierarchical_ring_reduce_scatter(const AlgorithmParams& params) {
  return reduce_scatter_over(kHierarchicalRingName, kRing, params);
}

Plan hierarchical_ring_broadcast(const AlgorithmParams& params) {
  return broadcast_over(kHierarchicalRingName, kRing.down, hosts_of(params).largest(), params);
}

Plan hierarchical_ring_reduce(const AlgorithmParams& params) {
  return reduce_over(kHierarchicalRingName, kRing.up, hosts_of(params).largest(), params);
}

}  // namespace tessera
