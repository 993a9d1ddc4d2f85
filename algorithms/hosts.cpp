#include "algorithms/hosts.h"

#include <algorithm>
#include <map>

#include "algorithms/places.h"

namespace tessera {

int Hosts::largest() const {
  size_t most = 0;
  for (const std::vector<int>& members : ranks) most = std::max(most, members.size());
  return static_cast<int>(most);
}

std::vector<BlockRun> Hosts::runs(int host) const {
  std::vector<BlockRun> runs;
  for (const int rank : ranks[host]) {
    if (!runs.empty() && runs.back().first + runs.back().count == rank) {
      ++runs.back().count;
    } else {
      runs.push_back({rank, 1});
    }
  }
  return runs;
}

Hosts hosts_of(const AlgorithmParams& params) {
  const Places places(params);
  const auto name_of = [&](int rank) { return params.host_of.empty() ? 0 : params.host_of[rank]; };
  std::map<int, int> numbers;
  for (int place = 0; place < params.ranks; ++place)
    numbers.emplace(name_of(places.rank(place)), static_cast<int>(numbers.size()));
  Hosts hosts;
  hosts.ranks.resize(numbers.size());
  for (int rank = 0; rank < params.ranks; ++rank) {
    hosts.of.push_back(numbers[name_of(rank)]);
    hosts.ranks[hosts.of[rank]].push_back(rank);
  }
  return hosts;
}

int count_hosts(const std::vector<int>& host_of) {
  std::vector<int> names = host_of;
  std::sort(names.begin(), names.end());
  const auto different = std::unique(names.begin(), names.end()) - names.begin();
  return std::max(1, static_cast<int>(different));
}

}  // namespace tessera
