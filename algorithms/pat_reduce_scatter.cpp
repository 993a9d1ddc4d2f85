// PAT reduce-scatter: n binomial trees at once, one for each block, climbed in batches, with
// bounded scratch.
//
// In the tree of block b the rank at distance v = (rank - b) mod n adds the sums of its children at
// v + 1, v + 2, v + 4, ... (below the lowest set bit of v) to its own contribution and sends the
// sum to its parent, at v without its lowest set bit. All trees are the same but for a rotation, so
// every rank sends, for each v, a sum to the rank lowest_bit(v) before it.
//
// The distances are cut in batches of kBatch, worked off from the farthest to the nearest. Within a
// batch the sums climb in log2(kBatch) rounds, those of a round sharing one signal; then the
// batch's first distance passes on what the whole batch and the batches below it have collected.
//
//      32 ranks, kBatch = 16
//                     hop 1           hop 2         hop 4   hop 8   last
//      batch 16..31   17 19 .. 31     18 22 26 30   20 28   24      16 -> 0
//      batch  0..15   1 3 .. 15       2 6 10 14     4 12    8       0: output
//
// The slots of a batch serve the next batch again. Above the batches one slot for each hop is
// enough: distances with the same lowest set bit have different parents, and the farther parent is
// worked off before the nearer child.
//
// Cost: ceil(log2 n) alpha + (n-1)/n S (beta + gamma) for n <= 16; beyond, 5 alpha for each batch.
// Scratch: at most 15 + log2(n/16) blocks.
#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/conveyor.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

constexpr int kBatch = 16;  // distances

// The generator: all ranks work off the same batches in step.
class PatReduceScatter {
 public:
  explicit PatReduceScatter(const AlgorithmParams& params)
      : n_(params.ranks),
        plan_("pat", Collective::kReduceScatter, n_, -1, 1, params.scratch_depth),
        inner_(n_),
        outer_(n_) {
    for (int rank = 0; rank < n_; ++rank) {
      for (int hop = 1; hop < std::min(kBatch, n_); hop *= 2) {
        inner_[rank].emplace_back(plan_, params.scratch_depth, (rank + hop) % n_, rank,
                                  sums_of_hop(hop), batches_with(hop));
      }
      for (int hop = kBatch; hop < n_; hop *= 2) {
        outer_[rank].emplace_back(plan_, params.scratch_depth, (rank + hop) % n_, rank, 1,
                                  (n_ - 1 - hop) / (2 * hop) + 1);
      }
    }
  }

  Plan run() && {
    for (int base = (n_ - 1) / kBatch * kBatch; base >= 0; base -= kBatch) {
      for (int rank = 0; rank < n_; ++rank) {
        // Level k of a batch can be awaited once; a rank's lane remembers which levels it has.
        std::vector<bool> awaited(inner_[rank].size(), false);
        int level = 0;
        for (int hop = 1; hop < kBatch; hop *= 2, ++level) {
          if (base + hop < n_) send_round(rank, base, hop, level, awaited);
        }
        finish_batch(rank, base, awaited);
      }
    }
    return std::move(plan_).build();
  }

 private:
  // Distances within a batch whose lowest set bit is `hop`, and slots for them.
  int sums_of_hop(int hop) const { return (std::min(kBatch, n_) - 1 - hop) / (2 * hop) + 1; }
  int batches_with(int hop) const { return (n_ - 1 - hop) / kBatch + 1; }

  // The slot of the sum that a child within the batch sent; `child` counts from the batch's base.
  Ref inner_slot(int rank, int level, int child) const {
    const int hop = 1 << level;
    return inner_[rank][level].ref((child - hop) / (2 * hop));
  }

  // Own contribution and the children's within the batch, nearest first. `below` levels at most.
  std::vector<Ref> inner_srcs(int rank, int base, int offset, int levels) const {
    std::vector<Ref> srcs{input(rank, wrap(rank - base - offset, n_))};
    for (int level = 0; level < levels; ++level) {
      const int child = offset + (1 << level);
      if (child < kBatch && base + child < n_) srcs.push_back(inner_slot(rank, level, child));
    }
    return srcs;
  }

  void await_levels(StepRef step, int rank, size_t levels, std::vector<bool>& awaited) {
    for (size_t level = 0; level < levels; ++level) {
      if (awaited[level]) continue;
      awaited[level] = true;
      inner_[rank][level].await(step);
    }
  }

  void send_round(int rank, int base, int hop, int level, std::vector<bool>& awaited) {
    const int to = wrap(rank - hop, n_);
    LaneRef lane = plan_.lane(rank);
    for (int offset = hop; offset < kBatch && base + offset < n_; offset += 2 * hop) {
      std::vector<Ref> srcs = inner_srcs(rank, base, offset, level);
      const size_t children = srcs.size() - 1;
      const Ref dst = inner_slot(to, level, offset);
      StepRef step =
          children == 0 ? lane.copy(0, dst, srcs[0]) : lane.reduce(0, {dst}, std::move(srcs));
      await_levels(step, rank, children, awaited);
      Conveyor& out = inner_[to][level];
      if (offset == hop) out.begin_fill(step);
      const int next = offset + 2 * hop;
      if (next >= kBatch || base + next >= n_) out.end_fill(step);
    }
  }

  // Passes on, or keeps, the sum of the batch's first distance.
  void finish_batch(int rank, int base, std::vector<bool>& awaited) {
    const int levels = static_cast<int>(inner_[rank].size());
    std::vector<Ref> srcs = inner_srcs(rank, base, 0, levels);
    const size_t present = srcs.size() - 1;
    const int limit = base == 0 ? n_ : lowest_bit(base);
    std::vector<Conveyor*> outer;
    for (int hop = kBatch, i = 0; hop < limit && base + hop < n_; hop *= 2, ++i) {
      outer.push_back(&outer_[rank][i]);
      srcs.push_back(outer_[rank][i].ref());
    }
    Conveyor* out = nullptr;
    if (base > 0) {
      int index = 0;
      while (kBatch << index != lowest_bit(base)) ++index;
      out = &outer_[wrap(rank - lowest_bit(base), n_)][index];
    }
    const Ref dst = out != nullptr ? out->ref() : output(rank, 0);
    LaneRef lane = plan_.lane(rank);
    StepRef step =
        srcs.size() == 1 ? lane.copy(0, dst, srcs[0]) : lane.reduce(0, {dst}, std::move(srcs));
    await_levels(step, rank, present, awaited);
    for (size_t level = 0; level < present; ++level) inner_[rank][level].release(step);
    for (Conveyor* conveyor : outer) {
      conveyor->await(step);
      conveyor->release(step);
    }
    if (out != nullptr) {
      out->begin_fill(step);
      out->end_fill(step);
    }
  }

  int n_;
  PlanBuilder plan_;
  std::vector<std::vector<Conveyor>> inner_;  // [rank][level]: from the rank 2^level further on
  std::vector<std::vector<Conveyor>> outer_;  // [rank][level]: from the rank kBatch 2^level on
};

}  // namespace

Plan pat_reduce_scatter(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("pat", Collective::kReduceScatter, params);
  return PatReduceScatter(params).run();
}

}  // namespace tessera
