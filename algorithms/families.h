// The generators, one file per family; registry.cpp lists them by collective. Pure functions.
#pragma once

#include "algorithms/algorithms.h"

namespace tessera {

// one_hop_symmetric.cpp, one_hop_rooted.cpp
Plan one_hop_all_reduce(const AlgorithmParams& params);
Plan one_hop_all_gather(const AlgorithmParams& params);
Plan one_hop_reduce_scatter(const AlgorithmParams& params);
Plan one_hop_all_to_all(const AlgorithmParams& params);
Plan one_hop_broadcast(const AlgorithmParams& params);
Plan one_hop_reduce(const AlgorithmParams& params);
Plan one_hop_gather(const AlgorithmParams& params);
Plan one_hop_scatter(const AlgorithmParams& params);

// recursive_doubling.cpp: the all-gather for powers of two
Plan recursive_doubling_all_reduce(const AlgorithmParams& params);
Plan recursive_doubling_all_gather(const AlgorithmParams& params);

// binomial.cpp, binomial_blocks.cpp
Plan binomial_broadcast(const AlgorithmParams& params);
Plan binomial_reduce(const AlgorithmParams& params);
Plan binomial_gather(const AlgorithmParams& params);
Plan binomial_scatter(const AlgorithmParams& params);

// bruck.cpp
Plan bruck_all_gather(const AlgorithmParams& params);
Plan bruck_all_to_all(const AlgorithmParams& params);

// two_phase.cpp
Plan two_phase_all_reduce(const AlgorithmParams& params);

// ring.cpp, chain.cpp
Plan ring_all_reduce(const AlgorithmParams& params);
Plan ring_all_gather(const AlgorithmParams& params);
Plan ring_reduce_scatter(const AlgorithmParams& params);
Plan chain_broadcast(const AlgorithmParams& params);
Plan chain_reduce(const AlgorithmParams& params);

// halving_doubling.cpp: the reduce-scatter for powers of two
Plan halving_doubling_all_reduce(const AlgorithmParams& params);
Plan recursive_halving_reduce_scatter(const AlgorithmParams& params);

// double_tree.cpp, tree.cpp
Plan double_tree_all_reduce(const AlgorithmParams& params);
Plan tree_broadcast(const AlgorithmParams& params);
Plan tree_reduce(const AlgorithmParams& params);

// pat.cpp
Plan pat_all_gather(const AlgorithmParams& params);
Plan pat_reduce_scatter(const AlgorithmParams& params);

// pairwise.cpp
Plan pairwise_all_to_all(const AlgorithmParams& params);

// direct_reduce.cpp, direct_move.cpp
Plan direct_all_reduce(const AlgorithmParams& params);
Plan direct_reduce_scatter(const AlgorithmParams& params);
Plan direct_reduce(const AlgorithmParams& params);
Plan direct_all_gather(const AlgorithmParams& params);
Plan direct_all_to_all(const AlgorithmParams& params);
Plan direct_broadcast(const AlgorithmParams& params);
Plan direct_get_broadcast(const AlgorithmParams& params);
Plan direct_gather(const AlgorithmParams& params);
Plan direct_scatter(const AlgorithmParams& params);

// send_recv.cpp
Plan staged_send_recv(const AlgorithmParams& params);
Plan direct_send_recv(const AlgorithmParams& params);

// put.cpp
Plan put_all_gather(const AlgorithmParams& params);
Plan put_all_to_all(const AlgorithmParams& params);
Plan put_broadcast(const AlgorithmParams& params);
Plan put_gather(const AlgorithmParams& params);
Plan put_scatter(const AlgorithmParams& params);
Plan put_send_recv(const AlgorithmParams& params);

// dissemination.cpp
Plan dissemination_barrier(const AlgorithmParams& params);

// For ranks on several hosts, with params.host_of.
// hierarchical.cpp
Plan hierarchical_all_reduce(const AlgorithmParams& params);
Plan hierarchical_all_gather(const AlgorithmParams& params);
Plan hierarchical_reduce_scatter(const AlgorithmParams& params);

// hierarchical_ring.cpp, hierarchical_tree.cpp
Plan hierarchical_ring_all_reduce(const AlgorithmParams& params);
Plan hierarchical_ring_all_gather(const AlgorithmParams& params);
Plan hierarchical_ring_reduce_scatter(const AlgorithmParams& params);
Plan hierarchical_ring_broadcast(const AlgorithmParams& params);
Plan hierarchical_ring_reduce(const AlgorithmParams& params);
Plan hierarchical_tree_all_reduce(const AlgorithmParams& params);
Plan hierarchical_tree_broadcast(const AlgorithmParams& params);
Plan hierarchical_tree_reduce(const AlgorithmParams& params);

// hierarchical_hop.cpp, hierarchical_hop_blocks.cpp, hierarchical_hop_moves.cpp
Plan hierarchical_hop_all_reduce(const AlgorithmParams& params);
Plan hierarchical_hop_broadcast(const AlgorithmParams& params);
Plan hierarchical_hop_reduce(const AlgorithmParams& params);
Plan hierarchical_barrier(const AlgorithmParams& params);
Plan hierarchical_hop_all_gather(const AlgorithmParams& params);
Plan hierarchical_hop_reduce_scatter(const AlgorithmParams& params);
Plan hierarchical_hop_all_to_all(const AlgorithmParams& params);
Plan hierarchical_hop_gather(const AlgorithmParams& params);
Plan hierarchical_hop_scatter(const AlgorithmParams& params);

}  // namespace tessera
