// Hierarchical exchange: reduce-scatter within the host, exchange between hosts, all-gather within.
//
// A block is cut into one chunk for every host and rail. On each host the rail's rank adds up what
// its neighbours have of the chunk and sends the sum straight to the rail's rank on the chunk's own
// host. That one completes the sum and sends it back to the rail on all hosts, where it is handed
// out.
//
//      host 0     ranks 0 1                        host 1     ranks 2 3
//      chunk 0    1 --> 0  . . . . . . . . . <---- 2 <-- 3    host 0's: the sum is made at rank 0
//                 1 <-- 0  . . . . . . . . . ----> 2 --> 3
//      chunk 1    1 --> 0  ----> . . . . . . . . . 2 <-- 3    host 1's: at rank 2
//      chunks 2, 3 likewise on the rail of ranks 1 and 3
//
// Each chunk leaves a host once and enters it once on the way up and once on the way down. All
// results of a chunk are copies of one sum.
//
// All-gather and reduce-scatter send each block, or each host's sum for it, once to or from every
// other host, between ranks of the same place where hosts are of one size.
//
// With h hosts of l ranks; alpha', beta': between hosts, l ranks of a host sharing its link.
// Cost: all-reduce      2 alpha + 2 alpha' + 2 (l-1)/l S beta + 2 (h-1)/h S beta' + S gamma
//       all-gather      alpha + alpha' + (h-1)/h S (beta + beta')
//       reduce-scatter  alpha + alpha' + (l-1)/l S beta + (h-1)/h S beta' + S gamma
#include "algorithms/families.h"
#include "algorithms/host_trees.h"

namespace tessera {
namespace {

constexpr const char* kHierarchicalName = "hierarchical";
constexpr HostShape kExchange{star_of_hosts, star_of_hosts};

}  // namespace

Plan hierarchical_all_reduce(const AlgorithmParams& params) {
  return all_reduce_over(kHierarchicalName, kExchange, params);
}

Plan hierarchical_all_gather(const AlgorithmParams& params) {
  return all_gather_over(kHierarchicalName, kExchange, params);
}

Plan hierarchical_reduce_scatter(const AlgorithmParams& params) {
  return reduce_scatter_over(kHierarchicalName, kExchange, params);
}

}  // namespace tessera
