// What each step of a simulation costs and which way its bytes go: chunk lengths, rank costs and
// routes, looked up fast. For the engine and for the explanation of the critical path.
//
// Thread safety: none (routes are looked up on first use).
#pragma once

#include <unordered_map>
#include <vector>

#include "simulator/simulate.h"

namespace tessera::simulator {

struct RouteCode {
  Path path;
  uint32_t links = 0;  // of the path, the graph's; 0: both ranks are on one node
  int slowest = -1;    // link
  double limit_gbs = 0;
  double latency_us = 0;
};

// A step's costs when nobody is in its way.
struct Work {
  double bytes = 0;       // of its chunks, to or from each peer
  double local_us = 0;    // copies and sums
  double request_us = 0;  // latency of its gets
  uint32_t flows = 0;
};

class Model {
 public:
  Model(const Source& source, const Routes& routes, const Message& message, const Cost& cost,
        Shares& shares);

  uint32_t passes() const { return passes_; }
  const RankCost& cost(uint32_t rank) const { return *costs_[rank]; }
  // Index of a core that several lanes share, or -1.
  int core(uint32_t rank) const { return cores_[rank]; }
  int cores() const { return core_count_; }

  double bytes(const StepCode& step, uint32_t rank, uint32_t pass) const;
  Work work(const StepCode& step, uint32_t rank, uint32_t pass);
  // nullptr: there is none; status() says why. Valid until the next call.
  const RouteCode* route(uint32_t from, uint32_t to);
  // What a flow of the step gets at most.
  double limit(const RouteCode& route, const Work& work, uint32_t rank) const {
    const double lane = cost(rank).lane_gbs;
    return lane > 0 ? std::min(route.limit_gbs, lane / work.flows) : route.limit_gbs;
  }
  // Calls visit(from, to) for each peer of the step: puts first, then gets.
  template <class Visit>
  void for_each_peer(const StepCode& step, uint32_t rank, Visit visit) const {
    const uint32_t* peers = source_.code().peers.data() + step.first_peer;
    for (uint32_t i = 0; i < step.puts; ++i) visit(rank, source_.turned_rank(peers[i], rank));
    peers += step.puts;
    for (uint32_t i = 0; i < step.gets; ++i) visit(source_.turned_rank(peers[i], rank), rank);
  }

  const Source& source() const { return source_; }
  const topology::Graph& graph() const { return routes_.graph(); }
  const Status& status() const { return status_; }

 private:
  void place_ranks(const Cost& cost);
  void cut_chunks(const Message& message);
  uint64_t pair_of(uint32_t from, uint32_t to) const;

  const Source& source_;
  const Routes& routes_;
  Shares& shares_;
  Status status_;
  uint32_t passes_ = 1;
  // [full slice, last slice]: bytes of the first k chunks of a block
  std::vector<double> ends_[2];
  std::vector<const RankCost*> costs_;
  std::vector<int> cores_;
  int core_count_ = 0;
  std::unordered_map<uint64_t, uint32_t> route_of_pair_;  // by pair_of()
  std::vector<RouteCode> found_;
  struct Last {
    uint32_t to = ~0u, route = 0;
  };
  std::vector<Last> last_;  // by sender: most talk to the same peer again
};

}  // namespace tessera::simulator
