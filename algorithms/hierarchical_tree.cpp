// Trees over hosts: few hops also for many hosts.
//
// The hosts form a binary tree, in which a chunk's rail has one rank at each host. All-reduce: sums
// climb it and the result descends it. Each host is the root for as many chunks as any other and has
// the other places in the tree equally often, so that all links between hosts are equally busy.
//
//      chunks of    host 0         host 1         host 2
//                      0              1              2
//                    /   \          /   \          /   \          4 hosts; within each, the rail's
//                   1     2        2     3        3     0         rank gathers and hands out
//                  /              /              /
//                 3              0              1
//
// Broadcast and reduce: one tree for each rail, with the root's host on top; the root shares its
// chunks out among its neighbours, which are on the other rails.
//
// With h hosts of l ranks, d = floor(log2 h):
// Cost: all-reduce  2 alpha + 2 d alpha' + 2 (l-1)/l S beta + 2 (h-1)/h S beta' + S gamma
//       broadcast   2 alpha + d alpha' + S (beta + 2 beta')
//       reduce      2 alpha + d alpha' + S (beta + 2 beta' + gamma)
#include "algorithms/families.h"
#include "algorithms/host_trees.h"

namespace tessera {
namespace {

constexpr const char* kHierarchicalTreeName = "hierarchical-tree";
constexpr HostShape kTree{binary_of_hosts, binary_of_hosts};

}  // namespace

Plan hierarchical_tree_all_reduce(const AlgorithmParams& params) {
  return all_reduce_over(kHierarchicalTreeName, kTree, params);
}

Plan hierarchical_tree_broadcast(const AlgorithmParams& params) {
  return broadcast_over(kHierarchicalTreeName, kTree.down, hosts_of(params).largest(), params);
}

Plan hierarchical_tree_reduce(const AlgorithmParams& params) {
  return reduce_over(kHierarchicalTreeName, kTree.up, hosts_of(params).largest(), params);
}

}  // namespace tessera
