// Binomial trees: broadcast and reduce in ceil(log2 n) rounds.
//
// Number the ranks from the root on: v = (rank - root) mod n. The parent of v is v without its
// lowest set bit.
//
//              0             8 ranks: 0 -> 4, then 0 -> 2 and 4 -> 6,
//           /  |  \                   then 0 -> 1, 2 -> 3, 4 -> 5 and 6 -> 7
//          4   2   1
//         / \   \     (v, not ranks)
//        6   5   3
//        |
//        7
//
// Broadcast: a rank that has the data sends it to the child with the largest subtree first.
// Reduce: a rank adds its children's sums to its own input, nearest child first, and passes the sum
// to its parent.
//
// Cost: broadcast  ceil(log2 n) (alpha + S beta)
//       reduce     ceil(log2 n) (alpha + S (beta + gamma))
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

// Distances from v to its children, largest first.
std::vector<int> child_distances(int v, int ranks) {
  std::vector<int> distances;
  const int limit = v == 0 ? ranks : lowest_bit(v);
  int distance = floor_power_of_two(ranks);
  for (; distance >= 1; distance /= 2) {
    if (distance < limit && v + distance < ranks) distances.push_back(distance);
  }
  return distances;
}

}  // namespace

Plan binomial_broadcast(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("binomial", Collective::kBroadcast, params);
  PlanBuilder plan("binomial", Collective::kBroadcast, n, params.root, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const auto rank_of = [&](int v) { return (v + params.root) % n; };
  std::vector<Slot> from_parent(n);
  for (int v = 1; v < n; ++v) {
    from_parent[v] = exchange.slot(rank_of(v - lowest_bit(v)), rank_of(v));
  }
  for (int v = 0; v < n; ++v) {
    const int rank = rank_of(v);
    LaneRef lane = plan.lane(rank);
    // The first step moves the data out of the slot, to the first child too; the others are served
    // from the output.
    std::vector<Ref> dsts{output(rank, 0)};
    const std::vector<int> distances = child_distances(v, n);
    if (!distances.empty()) dsts.insert(dsts.begin(), from_parent[v + distances[0]].ref());
    StepRef first = lane.copy(0, std::move(dsts), v == 0 ? input(rank, 0) : from_parent[v].ref());
    if (v != 0) exchange.take(first, from_parent[v]);
    for (size_t i = 0; i < distances.size(); ++i) {
      const Slot& child = from_parent[v + distances[i]];
      StepRef step = i == 0 ? first : lane.copy(0, child.ref(), output(rank, 0));
      exchange.fill(step, child);
    }
  }
  return std::move(plan).build();
}

Plan binomial_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("binomial", Collective::kReduce, params);
  PlanBuilder plan("binomial", Collective::kReduce, n, params.root, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const auto rank_of = [&](int v) { return (v + params.root) % n; };
  std::vector<Slot> to_parent(n);
  for (int v = 1; v < n; ++v) {
    to_parent[v] = exchange.slot(rank_of(v), rank_of(v - lowest_bit(v)));
  }
  for (int v = 0; v < n; ++v) {
    const int rank = rank_of(v);
    const std::vector<int> distances = child_distances(v, n);
    std::vector<Ref> srcs{input(rank, 0)};
    for (size_t i = distances.size(); i-- > 0;) {
      srcs.push_back(to_parent[v + distances[i]].ref());
    }
    const Ref dst = v == 0 ? output(rank, 0) : to_parent[v].ref();
    LaneRef lane = plan.lane(rank);
    StepRef step =
        distances.empty() ? lane.copy(0, dst, srcs[0]) : lane.reduce(0, {dst}, std::move(srcs));
    for (size_t i = distances.size(); i-- > 0;) exchange.take(step, to_parent[v + distances[i]]);
    if (v != 0) exchange.fill(step, to_parent[v]);
  }
  return std::move(plan).build();
}

}  // namespace tessera
