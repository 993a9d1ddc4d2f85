// Collectives along trees that cross each boundary between hosts as seldom as can be.
//
// A tree of ranks is made of a tree of hosts: on every host one rank stands for it, and the others
// hang on that one.
//
//      hosts    0              ranks      2                 ranks 0..3 on host 0, of which 2
//              / \                     / / \ \              stands for it,
//             1   2                   0 1 3 |  \            4 and 5 on host 1, 6 on host 2
//                                           5   6
//                                           4
//
// Every chunk (or block, where each rank has its own) has a tree of its own. Their roots change from
// host to host, and the ranks that stand for hosts from rail to rail, so that hosts and ranks are
// equally busy: among neighbours on a host that is a reduce-scatter on the way up and an all-gather
// on the way down. What differs between algorithms is the tree of hosts.
//
// Two lanes at every rank: one climbs, one descends, each in the order of the trees' levels, so that
// no chunk waits for one that is less far. Later passes climb while earlier ones descend.
//
// Uneven hosts: the number of chunks is hosts * ranks of the largest host. Each host is the root of
// equally many, so what a host sends to and gets from the others is the same for all; a host with
// fewer ranks has each of them on several rails.
#pragma once

#include "algorithms/hosts.h"
#include "algorithms/trees.h"

namespace tessera {

// The parent of each host in a tree with the given root; -1 for the root.
using HostTree = std::vector<int> (*)(int hosts, int root);

std::vector<int> star_of_hosts(int hosts, int root);    // all under the root
std::vector<int> binary_of_hosts(int hosts, int root);  // two under each
std::vector<int> chain_to_root(int hosts, int root);    // root+1 -> root+2 -> ... -> root
std::vector<int> chain_from_root(int hosts, int root);  // root -> root+1 -> ...

// On the way up sums are made, on the way down results handed on.
struct HostShape {
  HostTree up, down;
};

Plan all_reduce_over(const char* name, const HostShape& shape, const AlgorithmParams& params);
Plan all_gather_over(const char* name, const HostShape& shape, const AlgorithmParams& params);
Plan reduce_scatter_over(const char* name, const HostShape& shape, const AlgorithmParams& params);

// With `rails` ranks on each host that stand for it in turn, and as many chunks.
Plan broadcast_over(const char* name, HostTree tree, int rails, const AlgorithmParams& params);
Plan reduce_over(const char* name, HostTree tree, int rails, const AlgorithmParams& params);

}  // namespace tessera
