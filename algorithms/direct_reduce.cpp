// Direct reductions: each rank reads its share of everybody's input where it lies and writes the
// sum where it belongs. One step of work, no scratch, no copies.
//
//      all-reduce, 3 ranks
//      in0  [a0 a1 a2]     rank 0: a0 + b0 + c0 --> chunk 0 of out0, out1, out2
//      in1  [b0 b1 b2]     rank 1: a1 + b1 + c1 --> chunk 1 of out0, out1, out2
//      in2  [c0 c1 c2]     rank 2: a2 + b2 + c2 --> chunk 2 of out0, out1, out2
//
// Reduce: the sums go to the root's output only. Reduce-scatter: rank r sums block r into its own
// output.
//
// In place is safe: chunk r of all buffers is touched by rank r alone. Sums are made once, in rank
// order.
//
// Cost: all-reduce      2 alpha + 2 (n-1)/n S beta + (n-1)/n S gamma
//       reduce          2 alpha + (n-1)/n S (beta + gamma) + S/n beta
//       reduce-scatter  2 alpha + (n-1)/n S (beta + gamma)
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/visits.h"

namespace tessera {
namespace {

constexpr const char* kDirectReduceName = "direct";

// Every rank r reduces piece r (a chunk, or a block) of all inputs into dsts(r).
template <class Dsts>
void reduce_pieces(PlanBuilder& plan, int n, bool blocks, Dsts dsts) {
  Visits visits(plan, n);
  visits.allow_all();
  visits.enter();
  for (int rank = 0; rank < n; ++rank) {
    std::vector<Ref> srcs;
    for (int from = 0; from < n; ++from) srcs.push_back(input(from, rank));
    StepRef step = plan.lane(rank).reduce(blocks ? 0 : rank, dsts(rank), std::move(srcs));
    for (int s = 1; s < n; ++s) {
      visits.begin(step, rank, (rank + s) % n);
      visits.end(step, rank, (rank + s) % n);
    }
  }
  visits.leave();
}

}  // namespace

Plan direct_all_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kDirectReduceName, Collective::kAllReduce, params);
  PlanBuilder plan(kDirectReduceName, Collective::kAllReduce, n, -1, n, 1);
  reduce_pieces(plan, n, false, [&](int rank) {
    std::vector<Ref> dsts;
    for (int s = 0; s < n; ++s) dsts.push_back(output((rank + s) % n, rank));
    return dsts;
  });
  return std::move(plan).build();
}

Plan direct_reduce_scatter(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kDirectReduceName, Collective::kReduceScatter, params);
  PlanBuilder plan(kDirectReduceName, Collective::kReduceScatter, n, -1, 1, 1);
  reduce_pieces(plan, n, true, [](int rank) { return std::vector<Ref>{output(rank, 0)}; });
  return std::move(plan).build();
}

Plan direct_reduce(const AlgorithmParams& params) {
  const int n = params.ranks;
  if (n == 1) return alone(kDirectReduceName, Collective::kReduce, params);
  PlanBuilder plan(kDirectReduceName, Collective::kReduce, n, params.root, n, 1);
  reduce_pieces(plan, n, false,
                [&](int rank) { return std::vector<Ref>{output(params.root, rank)}; });
  return std::move(plan).build();
}

}  // namespace tessera
