// Correct plans that the tests of this folder take apart: written here, so that they depend on no
// algorithm of the library.
#pragma once

#include "plan/builder.h"

namespace tessera::samples {

// Ring: partial sums travel right through scratch (double where depth is 2), credits travel left.
inline Plan ring_reduce_scatter(int n, int depth = 2) {
  PlanBuilder plan("ring", Collective::kReduceScatter, n, -1, 1, depth);
  if (n == 1) {
    plan.lane(0).copy(0, {0, Buffer::kOutput, 0}, {0, Buffer::kInput, 0});
    return std::move(plan).build();
  }
  const auto lag = static_cast<uint32_t>(depth);
  for (int rank = 0; rank < n; ++rank) {
    plan.counter(rank);  // 0: arrived
    plan.counter(rank);  // 1: credits of the right neighbour
    plan.scratch(rank, n - 1);
  }
  for (int rank = 0; rank < n; ++rank) {
    const int right = (rank + 1) % n;
    const int left = (rank + n - 1) % n;
    LaneRef lane = plan.lane(rank);
    const auto block = [&](int s) { return (rank - s - 1 + 2 * n) % n; };
    lane.copy(0, {right, Buffer::kScratch, 0}, {rank, Buffer::kInput, block(0)})
        .wait(1, 1, lag)
        .signal(right, 0);
    for (int s = 1; s < n; ++s) {
      const bool last = s == n - 1;
      const Ref dst = last ? Ref{rank, Buffer::kOutput, 0} : Ref{right, Buffer::kScratch, s};
      StepRef step =
          lane.reduce(0, {dst}, {{rank, Buffer::kScratch, s - 1}, {rank, Buffer::kInput, block(s)}})
              .wait(0, static_cast<uint32_t>(s));
      if (last) {
        step.signal(left, 1);
      } else {
        step.signal(right, 0);
      }
    }
  }
  return std::move(plan).build();
}

// Each rank puts its block into a slot of its owner, who adds them as they come, and its own after
// all; one lane per part.
inline Plan any_order_reduce_scatter(int n) {
  PlanBuilder plan("any-order", Collective::kReduceScatter, n);
  for (int rank = 0; rank < n; ++rank) {
    plan.counter(rank);  // 0: tally
    plan.counter(rank);  // 1: the sum was read
    for (int peer = 0; peer < n; ++peer) {
      plan.counter(rank);  // 2 + 2 * peer: its part arrived
      plan.counter(rank);  // 3 + 2 * peer: it took mine
    }
    plan.scratch(rank, n + 1);
  }
  for (int rank = 0; rank < n; ++rank) {
    for (int peer = 0; peer < n; ++peer) {
      if (peer == rank) continue;
      plan.lane(rank, 2 * peer)
          .copy(0, {peer, Buffer::kScratch, rank}, {rank, Buffer::kInput, peer})
          .wait(3 + 2 * peer, 1, 1)
          .signal(peer, 2 + 2 * rank);
      plan.lane(rank, 2 * peer + 1)
          .accumulate(0, {rank, Buffer::kScratch, n}, {rank, Buffer::kScratch, peer}, 0)
          .wait(2 + 2 * peer)
          .wait(1, 1, 1)
          .signal(peer, 3 + 2 * rank);
    }
    plan.lane(rank, 2 * rank)
        .reduce(0, {{rank, Buffer::kOutput, 0}},
                {{rank, Buffer::kScratch, n}, {rank, Buffer::kInput, rank}})
        .wait(0, static_cast<uint32_t>(n - 1))
        .signal(rank, 1);
  }
  return std::move(plan).build();
}

// Ring reduce-scatter, then all-gather through scratch; n chunks per block.
inline Plan ring_all_reduce(int n, int depth = 2) {
  PlanBuilder plan("ring", Collective::kAllReduce, n, -1, n, depth);
  const auto lag = static_cast<uint32_t>(depth);
  for (int rank = 0; rank < n; ++rank) {
    plan.counter(rank);
    plan.counter(rank);
    plan.scratch(rank, 2 * (n - 1));
  }
  for (int rank = 0; rank < n; ++rank) {
    const int right = (rank + 1) % n;
    const int left = (rank + n - 1) % n;
    LaneRef lane = plan.lane(rank);
    const auto chunk = [&](int s) { return (rank - s - 1 + 4 * n) % n; };
    const auto slot = [](int owner, int s) { return Ref{owner, Buffer::kScratch, s}; };
    lane.copy(chunk(0), slot(right, 0), {rank, Buffer::kInput, chunk(0)})
        .wait(1, 1, lag)
        .signal(right, 0);
    for (int s = 1; s < n; ++s) {
      const int c = chunk(s);
      std::vector<Ref> dsts = {slot(right, s)};
      if (s == n - 1) dsts.push_back({rank, Buffer::kOutput, c});
      lane.reduce(c, dsts, {slot(rank, s - 1), {rank, Buffer::kInput, c}})
          .wait(0, static_cast<uint32_t>(s))
          .signal(right, 0);
    }
    for (int s = n; s < 2 * n - 1; ++s) {
      const int c = chunk(s);
      const bool last = s == 2 * n - 2;
      std::vector<Ref> dsts = {{rank, Buffer::kOutput, c}};
      if (!last) dsts.push_back(slot(right, s));
      StepRef step = lane.copy(c, dsts, slot(rank, s - 1)).wait(0, static_cast<uint32_t>(s));
      if (last) {
        step.signal(left, 1);
      } else {
        step.signal(right, 0);
      }
    }
  }
  return std::move(plan).build();
}

// One hop: everybody puts its input into everybody's scratch and reduces what arrived. With two
// copies of scratch the arrival of pass p proves that the sender has read what was put to it in
// pass p - 2, so that no credits are needed.
inline Plan one_hop_all_reduce(int n) {
  PlanBuilder plan("one-hop", Collective::kAllReduce, n, -1, 1, 2);
  for (int rank = 0; rank < n; ++rank) {
    plan.scratch(rank, n);
    for (int from = 0; from < n; ++from) plan.counter(rank);
  }
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    for (int i = 1; i < n; ++i) {
      const int to = (rank + i) % n;
      lane.copy(0, {to, Buffer::kScratch, rank}, {rank, Buffer::kInput, 0}).signal(to, rank);
    }
    std::vector<Ref> srcs;
    for (int from = 0; from < n; ++from) {
      srcs.push_back(from == rank ? Ref{rank, Buffer::kInput, 0}
                                  : Ref{rank, Buffer::kScratch, from});
    }
    StepRef step = lane.reduce(0, {{rank, Buffer::kOutput, 0}}, srcs);
    for (int from = 0; from < n; ++from) {
      if (from != rank) step.wait(from);
    }
  }
  return std::move(plan).build();
}

// The same over one counter per rank that all others raise: safe, as nobody signals pass p + 1
// before it has seen all of pass p.
inline Plan shared_counter_all_reduce(int n) {
  PlanBuilder plan("one-hop", Collective::kAllReduce, n, -1, 1, 2);
  for (int rank = 0; rank < n; ++rank) {
    plan.scratch(rank, n);
    plan.counter(rank);
    plan.counter(rank);
  }
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    std::vector<Ref> srcs = {{rank, Buffer::kInput, 0}};
    for (int i = 1; i < n; ++i) {
      const int to = (rank + i) % n;
      lane.copy(0, {to, Buffer::kScratch, rank}, {rank, Buffer::kInput, 0}).signal(to, 0);
      srcs.push_back({rank, Buffer::kScratch, to});
    }
    StepRef step =
        lane.reduce(0, {{rank, Buffer::kOutput, 0}}, srcs).wait(0, static_cast<uint32_t>(n - 1));
    for (int i = 1; i < n; ++i) step.signal((rank + i) % n, 1);
    lane.sync().wait(1, static_cast<uint32_t>(n - 1));
  }
  return std::move(plan).build();
}

// Chain from the root through scratch, two chunks per block as one run.
inline Plan chain_broadcast(int n, int root, int depth = 2) {
  PlanBuilder plan("chain", Collective::kBroadcast, n, root, 2, depth);
  const auto lag = static_cast<uint32_t>(depth);
  for (int rank = 0; rank < n; ++rank) {
    plan.scratch(rank, 2);
    plan.counter(rank);  // arrived
    plan.counter(rank);  // credit
  }
  for (int i = 0; i < n; ++i) {
    const int rank = (root + i) % n;
    const int next = (rank + 1) % n;
    const bool last = i == n - 1;
    std::vector<Ref> dsts = {{rank, Buffer::kOutput, 0}};
    if (!last) dsts.push_back({next, Buffer::kScratch, 0});
    const Ref src = i == 0 ? Ref{rank, Buffer::kInput, 0} : Ref{rank, Buffer::kScratch, 0};
    StepRef step = plan.lane(rank).copy(0, dsts, src).span(2);
    if (i != 0) step.wait(0).signal((rank + n - 1) % n, 1);
    if (!last) step.wait(1, 1, lag).signal(next, 0);
  }
  return std::move(plan).build();
}

// Direct: everybody gets its blocks from its peers' inputs, between "I have entered" and "I have
// read".
inline Plan direct_all_to_all(int n) {
  PlanBuilder plan("pairwise", Collective::kAllToAll, n);
  for (int rank = 0; rank < n; ++rank) {
    for (int i = 0; i < 2 * n; ++i) plan.counter(rank);  // 0..n-1: entered, n..2n-1: has read
  }
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    lane.copy(0, {rank, Buffer::kOutput, rank}, {rank, Buffer::kInput, rank});
    if (n == 1) break;
    StepRef enter = lane.sync();
    for (int i = 1; i < n; ++i) enter.signal((rank + i) % n, rank);
    for (int i = 1; i < n; ++i) {
      const int from = (rank + i) % n;
      lane.copy(0, {rank, Buffer::kOutput, from}, {from, Buffer::kInput, rank})
          .wait(from)
          .signal(from, n + rank);
    }
    StepRef leave = lane.sync();
    for (int i = 1; i < n; ++i) leave.wait(n + (rank + i) % n);
  }
  return std::move(plan).build();
}

// Direct all-gather on two lanes: one puts, one copies the own block.
inline Plan direct_all_gather(int n) {
  PlanBuilder plan("direct", Collective::kAllGather, n);
  for (int rank = 0; rank < n; ++rank) {
    for (int i = 0; i < 2 * n; ++i) plan.counter(rank);  // 0..n-1: entered, n..2n-1: arrived
  }
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank, 0);
    StepRef enter = lane.sync();
    for (int i = 1; i < n; ++i) enter.signal((rank + i) % n, rank);
    for (int i = 1; i < n; ++i) {
      const int to = (rank + i) % n;
      lane.copy(0, {to, Buffer::kOutput, rank}, {rank, Buffer::kInput, 0})
          .wait(to)
          .signal(to, n + rank);
    }
    StepRef leave = lane.sync();
    for (int i = 1; i < n; ++i) leave.wait(n + (rank + i) % n);
    plan.lane(rank, 1).copy(0, {rank, Buffer::kOutput, rank}, {rank, Buffer::kInput, 0});
  }
  return std::move(plan).build();
}

// Direct reduce to the root on two lanes, gated by the tiles of a kernel: the root gets all inputs.
inline Plan gated_reduce(int n, int root) {
  PlanBuilder plan("gated", Collective::kReduce, n, root, 2);
  for (int rank = 0; rank < n; ++rank) plan.external_counter(rank, 3);
  std::vector<int> ready(static_cast<size_t>(n));  // counters of the root
  for (int rank = 0; rank < n; ++rank) {
    if (rank == root) continue;
    ready[static_cast<size_t>(rank)] = plan.counter(root);
    const int released = plan.counter(rank);
    LaneRef lane = plan.lane(rank);
    lane.sync().wait(0, 3).signal(root, ready[static_cast<size_t>(rank)], 2);
    lane.sync().wait(released, 2);
  }
  for (int c = 0; c < 2; ++c) {
    std::vector<Ref> srcs;
    for (int rank = 0; rank < n; ++rank) srcs.push_back({rank, Buffer::kInput, c});
    StepRef step = plan.lane(root, c).reduce(c, {{root, Buffer::kOutput, c}}, srcs).wait(0, 3);
    for (int rank = 0; rank < n; ++rank) {
      if (rank != root) step.wait(ready[static_cast<size_t>(rank)], 2).signal(rank, 1);
    }
  }
  return std::move(plan).build();
}

inline Plan dissemination_barrier(int n) {
  PlanBuilder plan("dissemination", Collective::kBarrier, n);
  for (int rank = 0; rank < n; ++rank) {
    LaneRef lane = plan.lane(rank);
    int last = -1;  // counter of the round before
    for (int distance = 1; distance < n; distance *= 2) {
      const int round = plan.counter(rank);
      StepRef step = lane.sync();
      if (last >= 0) step.wait(last);
      step.signal((rank + distance) % n, round);
      last = round;
    }
    if (last >= 0) lane.sync().wait(last);
  }
  return std::move(plan).build();
}

}  // namespace tessera::samples
