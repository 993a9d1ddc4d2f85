// What the tests of this folder share: every algorithm of the registry, and the plans to try it
// with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"

namespace tessera::test {

template <class Predicate>
std::vector<Algorithm> all_algorithms(Predicate predicate) {
  std::vector<Algorithm> result;
  for (int c = 0; c < kCollectives; ++c) {
    for (const Algorithm& algorithm : algorithms(static_cast<Collective>(c))) {
      if (predicate(algorithm)) result.push_back(algorithm);
    }
  }
  return result;
}

inline std::vector<Algorithm> all_algorithms() {
  return all_algorithms([](const Algorithm&) { return true; });
}

// Roots worth trying: all of a small communicator, else the first, the last and one in between.
inline std::vector<int> roots(Collective collective, int ranks) {
  if (!has_root(collective)) return {-1};
  std::vector<int> result;
  if (ranks <= 8) {
    for (int root = 0; root < ranks; ++root) result.push_back(root);
  } else {
    result = {0, ranks / 3, ranks - 1};
  }
  return result;
}

inline std::string label(const Algorithm& algorithm, const AlgorithmParams& params) {
  std::string hosts = params.host_of.empty() ? "" : ", hosts";
  for (const int host : params.host_of) hosts += " " + std::to_string(host);
  return std::string(algorithm.name) + " " + to_string(algorithm.collective) +
         (algorithm.reach == Reach::kDirect ? " direct" : " staged") + ", " +
         std::to_string(params.ranks) + " ranks, root " + std::to_string(params.root) + ", depth " +
         std::to_string(params.scratch_depth) + ", chunks " + std::to_string(params.chunks) + hosts;
}

// Layouts worth trying with so many ranks: numbered host by host, in turn, unevenly, one rank on a
// host of its own, and each rank on its own.
inline std::vector<std::vector<int>> layouts(int ranks) {
  std::vector<std::vector<int>> result(5, std::vector<int>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    result[0][rank] = rank * 2 / ranks;
    result[1][rank] = rank % 3;
    result[2][rank] = 7 * (rank * rank / ranks * 4 / ranks);
    result[3][rank] = rank == ranks / 2 ? 1 : 0;
    result[4][rank] = ranks - rank;
  }
  if (ranks > 16) result.pop_back();
  std::erase_if(result, [](const std::vector<int>& layout) { return count_hosts(layout) < 2; });
  return result;
}

// Calls body(params) for every root of every rank count that the algorithm supports; one for
// several hosts also for each of the layouts.
template <class Body>
void for_each_shape(const Algorithm& algorithm, const std::vector<int>& rank_counts, Body body) {
  for (const int ranks : rank_counts) {
    if (!algorithm.supports(ranks, algorithm.across_hosts ? 2 : 1)) continue;
    for (const int root : roots(algorithm.collective, ranks)) {
      AlgorithmParams params;
      params.ranks = ranks;
      params.root = root;
      if (!algorithm.across_hosts) body(params);
      if (!algorithm.across_hosts) continue;
      for (std::vector<int>& layout : layouts(ranks)) {
        params.host_of = std::move(layout);
        body(params);
      }
    }
  }
}

// "all_reduce_one_hop_staged": a name for a parameterised test.
inline std::string test_name(const Algorithm& algorithm) {
  std::string name = std::string(to_string(algorithm.collective)) + "_" +
                     std::string(algorithm.name) +
                     (algorithm.reach == Reach::kDirect ? "_by_access" : "_staged");
  for (char& c : name) {
    if (c == '-' || c == ' ') c = '_';
  }
  return name;
}

}  // namespace tessera::test
