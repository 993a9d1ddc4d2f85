#include "fusion/traffic.h"

#include <algorithm>
#include <set>

#include "plan/partition.h"
#include "plan/shape.h"

namespace tessera {
namespace {

class Counting {
 public:
  Counting(const Plan& plan, int rank, uint64_t block, uint64_t remote, CountSums sums)
      : plan_(plan),
        rank_(rank),
        block_(block),
        remote_(remote),
        chunks_(plan.collective == Collective::kAllReduce ? plan.chunks_per_block / plan.ranks
                                                          : plan.chunks_per_block),
        sums_(sums) {}

  Traffic count() {
    if (plan_.collective != Collective::kAllGather) {
      const int blocks = input_blocks(plan_.collective, plan_.ranks, plan_.root, rank_);
      traffic_.written += block_ * static_cast<uint64_t>(blocks);
    }
    for (int owner = 0; owner < plan_.ranks; ++owner) {
      for (const Lane& lane : plan_.programs[static_cast<size_t>(owner)].lanes)
        for (const Step& step : lane.steps) count(step, owner);
    }
    return traffic_;
  }

 private:
  uint64_t length(const Step& step) const {
    uint64_t sum = 0;
    for (int i = 0; i < step.chunks; ++i) {
      const auto chunks = static_cast<uint32_t>(plan_.chunks_per_block);
      sum += chunk_range(block_, chunks, static_cast<uint32_t>(step.chunk + i) % chunks, 1).length;
    }
    return sum;
  }
  uint64_t here(const std::vector<Ref>& refs) const {
    return static_cast<uint64_t>(
        std::count_if(refs.begin(), refs.end(), [&](const Ref& r) { return r.rank == rank_; }));
  }

  // The kernel has stored into the slot: the copy is one no more, and its source was not stored.
  bool stored_by_kernel(const Step& step) const {
    return step.op == Op::kCopy && step.srcs[0].buffer == Buffer::kInput &&
           step.dsts[0].buffer == Buffer::kScratch &&
           (remote_ >> (step.srcs[0].chunk % chunks_) & 1) != 0;
  }

  void count(const Step& step, int owner) {
    if (step.op == Op::kSync) return;
    const uint64_t elements = length(step);
    if (stored_by_kernel(step)) {
      traffic_.written += elements * here(step.dsts);
      if (owner == rank_) traffic_.written -= elements;
      return;
    }
    uint64_t reads = here(step.srcs), writes = here(step.dsts);
    if (sums_ == CountSums::kMerging && step.op != Op::kCopy && owner == rank_) {
      const uint64_t away = step.dsts.size() - writes;
      reads = std::min<uint64_t>(away, 1);
      writes = 0;
    }
    // All accumulations but the first of a sum read it.
    if (step.op == Op::kAccumulate && owner == rank_ && sums_ == CountSums::kOperands &&
        !sums_begun_.insert(step.dsts[0].chunk).second)
      ++reads;
    traffic_.read += elements * reads;
    traffic_.written += elements * writes;
  }

  const Plan& plan_;
  int rank_;
  uint64_t block_;
  uint64_t remote_;  // chunks of a rank that kernels store
  int chunks_;       // of a rank
  CountSums sums_;
  std::set<int> sums_begun_;  // slots that the rank accumulates in
  Traffic traffic_;
};

}  // namespace

Traffic traffic_of(const Plan& plan, int rank, uint64_t block, bool remote, CountSums sums,
                   uint64_t remote_chunks) {
  return Counting(plan, rank, block, remote ? remote_chunks : 0, sums).count();
}

}  // namespace tessera
