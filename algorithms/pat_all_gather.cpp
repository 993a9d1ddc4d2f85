// PAT all-gather: n binomial trees at once, one for each block, far hops first, with bounded
// scratch.
//
// In the tree of block b the rank at distance v = (rank - b) mod n has the parent at distance v
// without its lowest set bit. All trees are the same but for a rotation, so in each round every
// rank does the same work: with hop D = P, P/2, ..., 1 (P < n the largest power of two) it sends,
// to the rank D further on, its blocks with v = 0, 2D, 4D, ...
//
//      8 ranks    D = 4   own block                            1 block  far
//                 D = 2   own, and the one from 4 back         2 blocks
//                 D = 1   own, from 2, 4 and 6 back            4 blocks near
//
// Compared with Bruck and recursive doubling the long ways carry the least data. The blocks of a
// round are aggregated into messages of up to kMessage blocks, which share one signal; a long round
// sends several messages through the same slots.
//
// Cost: ceil(log2 n) alpha + (n-1)/n S beta for n <= 17; about n/8 alpha more beyond.
// Scratch: at most 8 ceil(log2 n) blocks.
#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/conveyor.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

constexpr int kMessage = 8;  // blocks

// Distances whose blocks move in the round with hop `hop`.
std::vector<int> distances_in_round(int hop, int ranks) {
  std::vector<int> distances;
  for (int v = 0; v + hop < ranks; v += 2 * hop) distances.push_back(v);
  return distances;
}

// One message of a round on one rank: the blocks at distances[begin, end) go out, then those of the
// rank `hop` before come in.
void send_message(LaneRef lane, Conveyor& out, int rank, int n, const std::vector<int>& distances,
                  int begin, int end, bool first_round) {
  for (int i = begin; i < end; ++i) {
    const int v = distances[i];
    const int block = wrap(rank - v, n);
    const Ref slot = out.ref(i - begin);
    StepRef step = v == 0 && first_round ? lane.copy(0, {slot, output(rank, block)}, input(rank, 0))
                                         : lane.copy(0, slot, output(rank, block));
    if (i == begin) out.begin_fill(step);
    if (i == end - 1) out.end_fill(step);
  }
}

void take_message(LaneRef lane, Conveyor& in, int rank, int hop, int n,
                  const std::vector<int>& distances, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const int block = wrap(rank - hop - distances[i], n);
    StepRef step = lane.copy(0, output(rank, block), in.ref(i - begin));
    if (i == begin) in.await(step);
    if (i == end - 1) in.release(step);
  }
}

}  // namespace

Plan pat_all_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("pat", Collective::kAllGather, params);
  PlanBuilder plan("pat", Collective::kAllGather, n, -1, 1, params.scratch_depth);
  const int farthest = floor_power_of_two(n - 1);
  for (int hop = farthest; hop >= 1; hop /= 2) {
    const std::vector<int> distances = distances_in_round(hop, n);
    const int count = static_cast<int>(distances.size());
    const int messages = (count + kMessage - 1) / kMessage;
    std::vector<Conveyor> at;  // by receiving rank
    for (int rank = 0; rank < n; ++rank) {
      at.emplace_back(plan, params.scratch_depth, wrap(rank - hop, n), rank,
                      std::min(count, kMessage), messages);
    }
    for (int begin = 0; begin < count; begin += kMessage) {
      const int end = std::min(count, begin + kMessage);
      for (int rank = 0; rank < n; ++rank) {
        send_message(plan.lane(rank), at[(rank + hop) % n], rank, n, distances, begin, end,
                     hop == farthest);
      }
      for (int rank = 0; rank < n; ++rank) {
        take_message(plan.lane(rank), at[rank], rank, hop, n, distances, begin, end);
      }
    }
  }
  return std::move(plan).build();
}

}  // namespace tessera
