// Binomial gather and scatter: trees whose edges carry the blocks of a whole subtree.
//
// Number the ranks from the root on: v = (rank - root) mod n. The subtree of v is v and the ranks
// right after it, as many in all as the lowest set bit of v says, or fewer at the end. So its
// blocks are adjacent, but for the place where rank numbers wrap.
//
//      gather                     0               8 ranks; [blocks on an edge]
//                     [4 5 6 7] / | [2 3]  \ [1]
//                             4   2         1
//                     [6 7] / |   |               scatter: the same tree, arrows turned round
//                          6  5   3
//                          |
//                          7
//
// Gather: a rank sends its own block at once, and the blocks of all its children as one run when
// they have come. Scatter: a rank sends the largest subtree's blocks first and keeps its own last.
//
// Cost: ceil(log2 n) alpha + (n-1)/n S beta
#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

// Blocks in the subtree of v, v's own included.
int subtree(int v, int ranks) { return v == 0 ? ranks : std::min(lowest_bit(v), ranks - v); }

// Children of v, nearest first: their subtrees lie in this order right behind v.
std::vector<int> children(int v, int ranks) {
  std::vector<int> result;
  for (int distance = 1; distance < subtree(v, ranks); distance *= 2) {
    result.push_back(v + distance);
  }
  return result;
}

// What one child of the gather sends: its own block, then the blocks below it (none for a leaf).
struct GatherEdge {
  Slot own, below;
};

// The root of the gather moves a slot, whose blocks begin with that of v, to its output.
void deliver(PlanBuilder& plan, const Exchange& exchange, const AlgorithmParams& params,
             const Slot& slot, int v) {
  int offset = 0;
  for (const BlockRun& run : cut_at_wrap(v + params.root, slot.chunks, params.ranks)) {
    StepRef step = plan.lane(params.root).copy(0, output(params.root, run.first), slot.ref(offset));
    step.span(run.count);
    if (offset == 0) exchange.await(step, slot);
    offset += run.count;
    if (offset == slot.chunks) exchange.release(step, slot);
  }
}

}  // namespace

Plan binomial_gather(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone("binomial", Collective::kGather, params);
  PlanBuilder plan("binomial", Collective::kGather, n, params.root, 1, params.scratch_depth);
  Exchange exchange(plan, params.scratch_depth, Exchange::Credits::kAlways);
  const auto rank_of = [&](int v) { return (v + params.root) % n; };

  std::vector<GatherEdge> edges(n);  // by child; those of one parent adjacent, in order of v
  for (int v = 0; v < n; ++v) {
    for (const int child : children(v, n)) {
      edges[child].own = exchange.slot(rank_of(child), rank_of(v));
      const int below = subtree(child, n) - 1;
      if (below > 0) edges[child].below = exchange.slot(rank_of(child), rank_of(v), below);
    }
  }
  for (int v = 1; v < n; ++v) {
    const int rank = rank_of(v);
    LaneRef lane = plan.lane(rank);
    exchange.fill(lane.copy(0, edges[v].own.ref(), input(rank, 0)), edges[v].own);
    const std::vector<int> below = children(v, n);
    if (below.empty()) continue;
    StepRef step = lane.copy(0, edges[v].below.ref(), edges[below[0]].own.ref());
    step.span(subtree(v, n) - 1);
    exchange.fill(step, edges[v].below);
    for (const int child : below) {
      exchange.take(step, edges[child].own);
      if (subtree(child, n) > 1) exchange.take(step, edges[child].below);
    }
  }
  plan.lane(params.root).copy(0, output(params.root, params.root), input(params.root, 0));
  for (const int child : children(0, n)) {
    deliver(plan, exchange, params, edges[child].own, child);
    if (subtree(child, n) > 1) deliver(plan, exchange, params, edges[child].below, child + 1);
  }
  return std::move(plan).build();
}

namespace {

// The scatter, in order of v, so that a parent's puts are known before its child needs them.
class BinomialScatter {
 public:
  explicit BinomialScatter(const AlgorithmParams& params)
      : n_(params.ranks),
        root_(params.root),
        plan_("binomial", Collective::kScatter, n_, root_, 1, params.scratch_depth),
        exchange_(plan_, params.scratch_depth, Exchange::Credits::kAlways),
        parts_(n_) {}

  Plan run() && {
    root();
    for (int v = 1; v < n_; ++v) {
      std::vector<int> below = children(v, n_);
      for (size_t i = below.size(); i-- > 0;) send(v, below[i]);
      keep(v);
    }
    return std::move(plan_).build();
  }

 private:
  // What a put brought: blocks [begin, begin + slot.chunks) of the subtree. `left` are not moved
  // on.
  struct Part {
    Slot slot;
    int begin = 0;
    int left = 0;
  };

  int rank_of(int v) const { return (v + root_) % n_; }

  // A new put of `v` to `child`.
  const Slot& put_slot(int v, int child, int count) {
    std::vector<Part>& parts = parts_[child];
    const int begin = parts.empty() ? 0 : parts.back().begin + parts.back().slot.chunks;
    parts.push_back({exchange_.slot(rank_of(v), rank_of(child), count), begin, count});
    return parts.back().slot;
  }

  void root() {
    LaneRef lane = plan_.lane(root_);
    const std::vector<int> below = children(0, n_);
    for (size_t i = below.size(); i-- > 0;) {
      const int child = below[i];
      for (const BlockRun& run : cut_at_wrap(rank_of(child), subtree(child, n_), n_)) {
        const Slot& slot = put_slot(0, child, run.count);
        exchange_.fill(lane.copy(0, slot.ref(), input(root_, run.first)).span(run.count), slot);
      }
    }
    lane.copy(0, output(root_, 0), input(root_, root_));
  }

  // Blocks [first, first + count) of what `v` got, one piece for each part that they lie in.
  template <class Move>
  void move_on(int v, int first, int count, Move move) {
    for (Part& part : parts_[v]) {
      const int from = std::max(first, part.begin);
      const int to = std::min(first + count, part.begin + part.slot.chunks);
      if (from >= to) continue;
      StepRef step = move(part.slot.ref(from - part.begin), to - from);
      if (part.left == part.slot.chunks) exchange_.await(step, part.slot);
      part.left -= to - from;
      if (part.left == 0) exchange_.release(step, part.slot);
    }
  }

  void send(int v, int child) {
    move_on(v, child - v, subtree(child, n_), [&](Ref src, int count) {
      const Slot& slot = put_slot(v, child, count);
      StepRef step = plan_.lane(rank_of(v)).copy(0, slot.ref(), src).span(count);
      exchange_.fill(step, slot);
      return step;
    });
  }

  void keep(int v) {
    move_on(v, 0, 1, [&](Ref src, int) {
      return plan_.lane(rank_of(v)).copy(0, output(rank_of(v), 0), src);
    });
  }

  int n_, root_;
  PlanBuilder plan_;
  Exchange exchange_;
  std::vector<std::vector<Part>> parts_;  // by v
};

}  // namespace

Plan binomial_scatter(const AlgorithmParams& params) {
  if (params.ranks == 1) return alone("binomial", Collective::kScatter, params);
  return BinomialScatter(params).run();
}

}  // namespace tessera
