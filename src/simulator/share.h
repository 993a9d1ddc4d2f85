// How flows share links: at any time each gets its max-min fair share.
//
// No flow can get more without taking from one that has less. A flow is held back either by a link
// that is full, or by its own limit (the slowest link of its route, what its lane can move).
//
//      flow a  ==[ 10 ]=====[ 4 ]==      link 4 is full with a and b: each gets 2
//      flow b  ===================[ 4 ]  c gets what a leaves of link 10: 8
//      flow c  ==[ 10 ]==
//
// A link can hold flows back only if their limits together exceed its bandwidth. Others are
// ignored, so that a flow that meets nobody costs no more than the length of its route. Where links
// do bind, shares are max-min fair exactly if every flow is at its limit or has a bottleneck: a full
// link on which nobody gets more. So a change is followed only as far as it takes flows their
// bottleneck: the flows of the links that changed are shared out anew beside all others, then those
// whose bottleneck that has spoilt too, until none is left.
//
// A device whose node has a fan-out table adds two resources to each route that ends at it, for
// what it sends and for what it receives; their bandwidth goes by the number of peers that it
// sends to (receives from) at the time.
//
// Thread safety: none. Deterministic: results depend on the order of calls only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/graph.h"

namespace tessera::simulator {

// Links and fan-out resources of a route, in order; resources lie after the graph's links.
struct Path {
  uint32_t first = 0, count = 0;  // of the pool of paths
  uint32_t from = 0, to = 0;      // ranks
};

struct LinkSample {
  double time;
  uint32_t link;
  double gbs;  // moved over it from this time on
};

class Shares {
 public:
  struct Due {
    uint32_t flow, lane, version;
    double time;  // when it will have moved its bytes
  };

  // `samples`, if given, gets every change of what a link moves.
  explicit Shares(const topology::Graph& graph, std::vector<LinkSample>* samples = nullptr);

  // `links` and the ends' fan-out resources as one path.
  Path add_path(const std::vector<int>& links, int from_node, int to_node, int from_rank,
                int to_rank);

  // Forgets all paths; flows that are under way keep theirs.
  void forget_paths() { pool_.clear(); }

  // The i-th of the path; a graph's link if below their number.
  uint32_t resource_of(const Path& path, uint32_t i) const { return pool_[path.first + i]; }

  void start(double now, const Path& path, uint32_t lane, double limit_gbs, double bytes);
  // Ends a flow that is due; false if the event is stale.
  bool finish(double now, uint32_t flow, uint32_t version);

  // To be called when all starts and ends of an instant are known. What is due anew is in due()
  // until the next call.
  void settle(double now);
  std::vector<Due>& due() { return due_; }

 private:
  struct Flow {
    double left, rate, since, limit;
    Path path;
    uint32_t lane;
    uint32_t bottleneck = kNone;  // resource; none at its limit
    uint32_t version = 0;
    bool marked = false, active = false;
  };
  struct User {
    uint32_t flow, place;  // which resource of the flow's path this is
  };
  struct alignas(64) Resource {       // one cache line
    double capacity = 0, demand = 0;  // demand: the limits of its users together
    double left = 0;                  // while shares are computed
    double given = 0;                 // to each flow that it holds back
    uint32_t waiting = 0;
    bool marked = false, dirty = false;
    std::vector<User> users;
  };
  struct Fan {
    const std::vector<double>* table;
    std::vector<std::pair<uint32_t, uint32_t>> peers;  // and flows with each
  };

  static constexpr uint32_t kNone = ~0u;

  // With room for the rounding of sums.
  static bool binds(const Resource& r) { return r.demand > r.capacity * (1 + 1e-9); }

  void join(uint32_t resource, uint32_t peer);
  void leave(uint32_t resource, uint32_t peer);
  uint32_t peer_at(const Path& path, uint32_t resource) const;
  void mark_dirty(uint32_t resource);
  void remove_user(uint32_t flow, uint32_t place);
  void mark(uint32_t resource);
  void mark_users(uint32_t resource);
  void collect();
  void fill();
  double least_share();
  void freeze(uint32_t flow, double rate, uint32_t bottleneck);
  bool widen(bool narrow);
  double rate_of(uint32_t flow) const {
    return flows_[flow].marked ? new_rates_[flow] : flows_[flow].rate;
  }
  void set_rate(double now, uint32_t flow, double rate);
  void sample(double now, uint32_t flow, double change);
  uint32_t& place_of(uint32_t flow, uint32_t place) { return places_[flow * stride_ + place]; }
  // The place-th resource of the flow's path.
  uint32_t resource_at(uint32_t flow, uint32_t place) const {
    return taken_[flow * stride_ + place];
  }

  uint32_t links_ = 0;
  std::vector<int> fan_of_node_;  // first of a node's two fan-out resources; -1: none
  std::vector<Resource> resources_;
  std::vector<Fan> fans_;  // of those that are no links
  std::vector<uint32_t> pool_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_, dirty_;
  size_t stride_ = 8;
  // by flow, stride_ for each: its resources, and its place among each one's users
  std::vector<uint32_t> taken_, places_;
  std::vector<Due> due_;
  std::vector<LinkSample>* samples_;
  std::vector<double> link_rates_;
  // the part of the machine that a change concerns
  std::vector<uint32_t> part_links_, part_flows_;
  size_t looked_at_ = 0;                              // of part_flows_, for their links
  std::vector<std::pair<double, uint32_t>> fullest_;  // heap: share of a flow, resource
  std::vector<double> new_rates_;                     // by flow
};

}  // namespace tessera::simulator
