// Rings, trees and the NIC of each rank, found on a graph.
//
//   channel 0:   host 0                 host 1                 one ring over two hosts: it enters
//          nic0 > 0 > 1 > 2 > 3 > nic0 =====> nic0 > 4 > 5 ..   and leaves each host by the NIC of
//   channel 1:                                                  the channel's rail
//          nic1 > 1 > 2 > 3 > 0 > nic1 =====> nic1 > 5 > 6 ..
//
// The layout is deterministic: the same graph and ranks give the same layout on every rank. No ring
// is worse than the order 0, 1, ..., n - 1: that one is tried too.
//
// Cost: bounded by SearchOptions::steps, shared by the hosts that differ in shape; hosts of one
// shape are searched once. Thread safety: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "topology/graph.h"
#include "topology/paths.h"

namespace tessera::topology {

struct SearchOptions {
  int channels = 32;        // at most
  int64_t steps = 400'000;  // of the exact search, over all speeds and hosts
};

struct Hop {
  int from = 0, to = 0;    // ranks
  std::vector<int> links;  // on the way
  int relay = -1;          // a rank whose GPU passes the bytes on to its NIC
};

// bandwidth: GB/s that each rank can send along it while all other channels do the same.
struct Ring {
  std::vector<int> order;  // ranks
  std::vector<Hop> hops;   // from each to the next; the last one leads back
  double bandwidth = 0;
};

struct Tree {
  int root = 0;
  std::vector<int> parent;  // by rank; -1: the root
  std::vector<Hop> hops;    // from each rank but the root to its parent, by rank
  double bandwidth = 0;     // up and down at once
};

struct Layout {
  std::vector<int> nodes;  // by rank
  std::vector<Ring> rings;
  std::vector<Tree> trees;
  double ring_bandwidth = 0, tree_bandwidth = 0;  // all channels together
  std::vector<int> nic;                           // by rank: the card it uses; -1: none
  std::vector<std::vector<int>> ports;            // by rank: of its card or cards
  std::vector<std::string> notes;
};

Result<Layout> search(const Graph& graph, std::span<const int> rank_nodes,
                      const SearchOptions& options = {});

// Of every rank to every card of its host, nearest first, so that a crossed pairing can be seen.
struct NicDistance {
  int rank = 0, nic = 0;  // nic: node
  Path path;
};
std::vector<NicDistance> nic_distances(const Graph& graph, std::span<const int> rank_nodes);

// What each of these channels gets if all run at once and share every link evenly; 0 if a hop has
// no links between different nodes.
double shared_bandwidth(const Graph& graph, std::span<const int> rank_nodes,
                        const std::vector<std::vector<Hop>>& channels);

}  // namespace tessera::topology
