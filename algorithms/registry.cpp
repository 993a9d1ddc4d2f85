// The list of all algorithms. In the cost lines S is the bytes of the larger of a rank's buffers, n
// the ranks, m the chunks of a block; alpha is the latency of a hop, beta the time to move a byte,
// gamma the time to reduce one. Of plans for several hosts: h hosts of l ranks, alpha' and beta'
// between them.
#include <array>

#include "algorithms/exchange.h"
#include "algorithms/families.h"

namespace tessera {
namespace {

constexpr bool kLowLatency = true;
constexpr bool kBulk = false;
constexpr bool kRotates = true;

bool any(int ranks) { return ranks >= 1; }
bool powers_of_two(int ranks) { return is_power_of_two(ranks); }
bool pairs(int ranks) { return ranks == 2; }

constexpr auto kStaged = Reach::kStaged;
constexpr auto kDirect = Reach::kDirect;

// One made for several hosts.
constexpr Algorithm across(std::string_view name, Collective collective, bool low_latency,
                           Plan (*build)(const AlgorithmParams&), std::string_view cost) {
  return {name, collective, kStaged, low_latency, any, build, cost, false, true};
}

// Direct by puts alone.
constexpr Algorithm puts(Collective collective, bool (*fits)(int),
                         Plan (*build)(const AlgorithmParams&), std::string_view cost) {
  return {"put", collective, kDirect, kBulk, fits, build, cost, false, false, true};
}

constexpr std::array kAllReduce = {
    Algorithm{"one-hop", Collective::kAllReduce, kStaged, kLowLatency, any, one_hop_all_reduce,
              "alpha + (n-1) S (beta + gamma)"},
    Algorithm{"recursive-doubling", Collective::kAllReduce, kStaged, kLowLatency, any,
              recursive_doubling_all_reduce,
              "floor(log2 n) (alpha + S (beta + gamma)); n not a power of two: "
              "+ 2 (alpha + S beta) + S gamma"},
    Algorithm{"two-phase", Collective::kAllReduce, kStaged, kBulk, any, two_phase_all_reduce,
              "2 alpha + 2 (n-1)/n S beta + (n-1)/n S gamma"},
    Algorithm{"halving-doubling", Collective::kAllReduce, kStaged, kBulk, any,
              halving_doubling_all_reduce,
              "2 log2(n) alpha + 2 (n-1)/n S beta + (n-1)/n S gamma; n not a power of two: "
              "+ 2 (alpha + S beta) + S gamma"},
    Algorithm{"double-tree", Collective::kAllReduce, kStaged, kBulk, any, double_tree_all_reduce,
              "(2 floor(log2 n) - 1 + m) (alpha + 3/2 S/m beta + S/m gamma)"},
    Algorithm{"ring", Collective::kAllReduce, kStaged, kBulk, any, ring_all_reduce,
              "2 (n-1) alpha + 2 (n-1)/n S beta + (n-1)/n S gamma", kRotates},
    Algorithm{"direct", Collective::kAllReduce, kDirect, kBulk, any, direct_all_reduce,
              "2 alpha + 2 (n-1)/n S beta + (n-1)/n S gamma"},
    across("hierarchical-hop", Collective::kAllReduce, kLowLatency, hierarchical_hop_all_reduce,
           "2 alpha + alpha' + (l-1) S (2 beta + gamma) + (h-1) S (beta' + gamma)"),
    across("hierarchical-tree", Collective::kAllReduce, kBulk, hierarchical_tree_all_reduce,
           "2 alpha + 2 floor(log2 h) alpha' + 2 (l-1)/l S beta + 2 (h-1)/h S beta' + S gamma"),
    across("hierarchical", Collective::kAllReduce, kBulk, hierarchical_all_reduce,
           "2 alpha + 2 alpha' + 2 (l-1)/l S beta + 2 (h-1)/h S beta' + S gamma"),
    across("hierarchical-ring", Collective::kAllReduce, kBulk, hierarchical_ring_all_reduce,
           "2 alpha + 2 (h-1) alpha' + 2 (l-1)/l S beta + 2 (h-1)/h S beta' + S gamma"),
};

constexpr std::array kReduce = {
    Algorithm{"one-hop", Collective::kReduce, kStaged, kLowLatency, any, one_hop_reduce,
              "alpha + (n-1) S (beta + gamma)"},
    Algorithm{"binomial", Collective::kReduce, kStaged, kLowLatency, any, binomial_reduce,
              "ceil(log2 n) (alpha + S (beta + gamma))"},
    Algorithm{"tree", Collective::kReduce, kStaged, kBulk, any, tree_reduce,
              "(floor(log2 n) - 1 + m) (alpha + 2 S/m (beta + gamma))"},
    Algorithm{"ring", Collective::kReduce, kStaged, kBulk, any, chain_reduce,
              "(n-2+m) (alpha + S/m (beta + gamma))"},
    Algorithm{"direct", Collective::kReduce, kDirect, kBulk, any, direct_reduce,
              "2 alpha + (n-1)/n S (beta + gamma) + S/n beta"},
    across("hierarchical-hop", Collective::kReduce, kLowLatency, hierarchical_hop_reduce,
           "alpha + alpha' + (l-1) S (beta + gamma) + (h-1) S (beta' + gamma)"),
    across("hierarchical-tree", Collective::kReduce, kBulk, hierarchical_tree_reduce,
           "2 alpha + floor(log2 h) alpha' + S (beta + 2 beta' + gamma)"),
    across("hierarchical-ring", Collective::kReduce, kBulk, hierarchical_ring_reduce,
           "2 alpha + (h-1) alpha' + S (beta + beta' + gamma)"),
};

constexpr std::array kBroadcast = {
    Algorithm{"one-hop", Collective::kBroadcast, kStaged, kLowLatency, any, one_hop_broadcast,
              "alpha + (n-1) S beta"},
    Algorithm{"binomial", Collective::kBroadcast, kStaged, kLowLatency, any, binomial_broadcast,
              "ceil(log2 n) (alpha + S beta)"},
    Algorithm{"tree", Collective::kBroadcast, kStaged, kBulk, any, tree_broadcast,
              "(floor(log2 n) - 1 + m) (alpha + 2 S/m beta)"},
    Algorithm{"ring", Collective::kBroadcast, kStaged, kBulk, any, chain_broadcast,
              "(n-2+m) (alpha + S/m beta)"},
    Algorithm{"direct", Collective::kBroadcast, kDirect, kBulk, any, direct_broadcast,
              "2 alpha + (n-1)/n S beta"},
    Algorithm{"direct-get", Collective::kBroadcast, kDirect, kBulk, any, direct_get_broadcast,
              "2 alpha + S beta"},
    puts(Collective::kBroadcast, any, put_broadcast, "2 alpha + (n-1) S beta"),
    across("hierarchical-hop", Collective::kBroadcast, kLowLatency, hierarchical_hop_broadcast,
           "alpha + alpha' + (l-1) S beta + (h-1) S beta'"),
    across("hierarchical-tree", Collective::kBroadcast, kBulk, hierarchical_tree_broadcast,
           "2 alpha + floor(log2 h) alpha' + S (beta + 2 beta')"),
    across("hierarchical-ring", Collective::kBroadcast, kBulk, hierarchical_ring_broadcast,
           "2 alpha + (h-1) alpha' + S (beta + beta')"),
};

constexpr std::array kAllGather = {
    Algorithm{"one-hop", Collective::kAllGather, kStaged, kLowLatency, any, one_hop_all_gather,
              "alpha + (n-1)/n S beta"},
    Algorithm{"recursive-doubling", Collective::kAllGather, kStaged, kLowLatency, powers_of_two,
              recursive_doubling_all_gather, "log2(n) alpha + (n-1)/n S beta"},
    Algorithm{"bruck", Collective::kAllGather, kStaged, kLowLatency, any, bruck_all_gather,
              "ceil(log2 n) alpha + (n-1)/n S beta"},
    Algorithm{"pat", Collective::kAllGather, kStaged, kBulk, any, pat_all_gather,
              "(ceil(log2 n) + n/8) alpha + (n-1)/n S beta"},
    Algorithm{"ring", Collective::kAllGather, kStaged, kBulk, any, ring_all_gather,
              "(n-1) alpha + (n-1)/n S beta", kRotates},
    Algorithm{"direct", Collective::kAllGather, kDirect, kBulk, any, direct_all_gather,
              "2 alpha + (n-1)/n S beta"},
    puts(Collective::kAllGather, any, put_all_gather, "2 alpha + (n-1)/n S beta"),
    across("hierarchical-hop", Collective::kAllGather, kLowLatency, hierarchical_hop_all_gather,
           "2 alpha + alpha' + (h-1)/h S (l beta + beta')"),
    across("hierarchical", Collective::kAllGather, kBulk, hierarchical_all_gather,
           "alpha + alpha' + (h-1)/h S (beta + beta')"),
    across("hierarchical-ring", Collective::kAllGather, kBulk, hierarchical_ring_all_gather,
           "alpha + (h-1) alpha' + (h-1)/h S (beta + beta')"),
};

constexpr std::array kReduceScatter = {
    Algorithm{"one-hop", Collective::kReduceScatter, kStaged, kLowLatency, any,
              one_hop_reduce_scatter, "alpha + (n-1)/n S (beta + gamma)"},
    Algorithm{"recursive-halving", Collective::kReduceScatter, kStaged, kBulk, powers_of_two,
              recursive_halving_reduce_scatter, "log2(n) alpha + (n-1)/n S (beta + gamma)"},
    Algorithm{"pat", Collective::kReduceScatter, kStaged, kBulk, any, pat_reduce_scatter,
              "max(ceil(log2 n), 5 n/16) alpha + (n-1)/n S (beta + gamma)"},
    Algorithm{"ring", Collective::kReduceScatter, kStaged, kBulk, any, ring_reduce_scatter,
              "(n-1) alpha + (n-1)/n S (beta + gamma)", kRotates},
    Algorithm{"direct", Collective::kReduceScatter, kDirect, kBulk, any, direct_reduce_scatter,
              "2 alpha + (n-1)/n S (beta + gamma)"},
    across("hierarchical-hop", Collective::kReduceScatter, kLowLatency,
           hierarchical_hop_reduce_scatter,
           "2 alpha + alpha' + l S (beta + gamma) + (h-1)/h S (beta' + gamma)"),
    across("hierarchical", Collective::kReduceScatter, kBulk, hierarchical_reduce_scatter,
           "alpha + alpha' + (l-1)/l S beta + (h-1)/h S beta' + S gamma"),
    across("hierarchical-ring", Collective::kReduceScatter, kBulk, hierarchical_ring_reduce_scatter,
           "alpha + (h-1) alpha' + (l-1)/l S beta + (h-1)/h S beta' + S gamma"),
};

constexpr std::array kAllToAll = {
    Algorithm{"one-hop", Collective::kAllToAll, kStaged, kLowLatency, any, one_hop_all_to_all,
              "alpha + (n-1)/n S beta"},
    Algorithm{"bruck", Collective::kAllToAll, kStaged, kLowLatency, any, bruck_all_to_all,
              "ceil(log2 n) (alpha + S/2 beta)"},
    Algorithm{"pairwise", Collective::kAllToAll, kStaged, kBulk, any, pairwise_all_to_all,
              "(n-1) (alpha + S/n beta)", kRotates},
    Algorithm{"direct", Collective::kAllToAll, kDirect, kBulk, any, direct_all_to_all,
              "2 alpha + (n-1)/n S beta"},
    puts(Collective::kAllToAll, any, put_all_to_all, "2 alpha + (n-1)/n S beta"),
    across("hierarchical-hop", Collective::kAllToAll, kLowLatency, hierarchical_hop_all_to_all,
           "2 alpha + alpha' + (h-1) l/h S (2 beta + beta')"),
};

constexpr std::array kGather = {
    Algorithm{"one-hop", Collective::kGather, kStaged, kLowLatency, any, one_hop_gather,
              "alpha + (n-1)/n S beta"},
    Algorithm{"binomial", Collective::kGather, kStaged, kLowLatency, any, binomial_gather,
              "ceil(log2 n) alpha + (n-1)/n S beta"},
    Algorithm{"direct", Collective::kGather, kDirect, kBulk, any, direct_gather,
              "2 alpha + (n-1)/n^2 S beta"},
    puts(Collective::kGather, any, put_gather, "2 alpha + (n-1)/n S beta"),
    across("hierarchical-hop", Collective::kGather, kLowLatency, hierarchical_hop_gather,
           "alpha + alpha' + (h-1)/h S (beta + beta')"),
};

constexpr std::array kScatter = {
    Algorithm{"one-hop", Collective::kScatter, kStaged, kLowLatency, any, one_hop_scatter,
              "alpha + (n-1)/n S beta"},
    Algorithm{"binomial", Collective::kScatter, kStaged, kLowLatency, any, binomial_scatter,
              "ceil(log2 n) alpha + (n-1)/n S beta"},
    Algorithm{"direct", Collective::kScatter, kDirect, kBulk, any, direct_scatter,
              "2 alpha + (n-1)/n^2 S beta"},
    puts(Collective::kScatter, any, put_scatter, "2 alpha + (n-1)/n S beta"),
    across("hierarchical-hop", Collective::kScatter, kLowLatency, hierarchical_hop_scatter,
           "alpha + alpha' + (h-1)/h S (beta + beta')"),
};

constexpr std::array kSendRecv = {
    Algorithm{"staged", Collective::kSendRecv, kStaged, kLowLatency, pairs, staged_send_recv,
              "alpha + S beta"},
    Algorithm{"direct", Collective::kSendRecv, kDirect, kBulk, pairs, direct_send_recv,
              "2 alpha + S/2 beta"},
    puts(Collective::kSendRecv, pairs, put_send_recv, "2 alpha + S beta"),
};

constexpr std::array kBarrier = {
    Algorithm{"dissemination", Collective::kBarrier, kStaged, kBulk, any, dissemination_barrier,
              "ceil(log2 n) alpha"},
    across("hierarchical", Collective::kBarrier, kBulk, hierarchical_barrier,
           "2 alpha + ceil(log2 h) alpha'"),
};

}  // namespace

std::span<const Algorithm> algorithms(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return kAllReduce;
    case Collective::kReduce:
      return kReduce;
    case Collective::kBroadcast:
      return kBroadcast;
    case Collective::kAllGather:
      return kAllGather;
    case Collective::kReduceScatter:
      return kReduceScatter;
    case Collective::kAllToAll:
      return kAllToAll;
    case Collective::kGather:
      return kGather;
    case Collective::kScatter:
      return kScatter;
    case Collective::kSendRecv:
      return kSendRecv;
    case Collective::kBarrier:
      return kBarrier;
  }
  return {};
}

const Algorithm* find_algorithm(Collective collective, std::string_view name, Reach reach) {
  for (const Algorithm& algorithm : algorithms(collective)) {
    if (algorithm.name == name && algorithm.reach == reach) return &algorithm;
  }
  return nullptr;
}

}  // namespace tessera
