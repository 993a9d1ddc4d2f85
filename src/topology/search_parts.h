// Inside of search: its steps.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "topology/search.h"

namespace tessera::topology {

// The ranks that reach each other without the fabric: as a rule, those of a host.
struct Group {
  std::vector<int> ranks;  // ascending
  // Ways in and out, in the order in which channels use them, with the rank that is nearest
  struct Rail {
    int port = -1;  // node
    int head = 0;   // place in ranks
  };
  std::vector<Rail> rails;
};

// From the fabric by a port to the rank where a ring enters a host, the head; and from the rank where
// it leaves the host by a port to the fabric, over the head's GPU where the card is nearer to that, or
// better joined.
struct WayOut {
  std::vector<int> links;
  bool by_head = false;
  size_t to_head = 0;  // of the links, as many as lead to the head
};
std::vector<int> way_in(Paths& paths, int port, int head);
WayOut way_out(Paths& paths, int tail, int head, int port);

// rails.cpp: cards to ranks and the rails that follow.
void assign_nics(Paths& paths, Layout& layout, std::vector<Group>& groups, bool several_groups);

// The part of a ring within a group: of several groups, from a rail's head on; of one, all of it.
struct Chain {
  std::vector<int> order;  // places in Group::ranks
  std::vector<Hop> hops;   // between them, of ranks, not places; of one group also the one back
  std::vector<int> in;     // links from the fabric to the head
  std::vector<int> out;    // and from the last rank to the fabric
  int relay = -1;
};

inline constexpr int kMostExactRanks = 16;   // of a group that is searched exactly
inline constexpr int kMostGreedyRanks = 64;  // of one whose greedy order is tried

// The ways of a hop between two nodes of a group of so many ranks, the best first: several where
// planes of switches lie side by side.
std::vector<std::vector<int>> ways_between(Paths& paths, int from, int to, size_t ranks);

// Gives every hop that has no links that of its ways which the others load least; since the last
// hops decide what was best for the first, all of them choose again a few times. The other hops stay
// as they are. Only within groups of up to kMostGreedyRanks there is a choice. In routing.cpp.
void route(Paths& paths, std::span<const int> rank_nodes, size_t ranks_of_host,
           std::vector<std::vector<Hop>>& channels);

// As many chains as fit into the group's links at a speed. In chains.cpp; the orders that it tries
// in orders.cpp.
class ChainSearch {
 public:
  ChainSearch(Paths& paths, const std::vector<int>& nodes, const Group& group, bool closed,
              int64_t steps);

  // Chain c uses rail c modulo their number. Stops at the first that does not fit. With the known
  // orders tried first, or with those only that the search finds.
  std::vector<Chain> pack(double speed, int most, bool with_known);
  // As pack, with one order for all.
  std::vector<Chain> pack_in_order(const std::vector<int>& order, double speed, int most);
  // Whether orders can be searched for; else only the known ones are tried.
  bool exact() const;
  // Speeds worth trying, descending.
  std::vector<double> speeds();

 private:
  using Ways = std::vector<std::vector<int>>;
  std::vector<Chain> pack_once(double speed, int most, bool with_known);
  int most_by_links(double speed) const;
  const Ways& ways(int from, int to);  // places
  bool take(const Ways& ways, std::vector<int>& taken);
  void give_back(const std::vector<int>& links);
  bool enter(const Group::Rail& rail, Chain& chain);
  bool leave(const Group::Rail& rail, Chain& chain);
  void undo(const Chain& chain);
  bool follow(const std::vector<int>& order, int channel, Chain& chain);
  bool grow(int channel, Chain& chain, std::vector<char>& used);
  bool start(int channel, Chain& chain, int first);
  bool finish(int channel, Chain& chain);
  void refill(double speed);
  bool find(int channel, Chain& chain);
  // orders.cpp
  std::vector<std::vector<int>> known_orders();
  std::vector<int> by_place();
  std::vector<int> greedy();
  void improve(std::vector<int>& order);
  double hop_cost(int from, int to);
  bool complete();

  Paths& paths_;
  const Graph& graph_;
  const std::vector<int>& nodes_;
  const Group& group_;
  const bool closed_;
  int64_t steps_;
  int64_t steps_here_ = 0;  // of one chain
  int64_t variant_steps_;   // of steps_, for searches in other orders
  int variant_ = 0;         // of the order of candidates
  double speed_ = 0;
  std::vector<double> left_;  // per link of the graph
  std::map<std::pair<int, int>, Ways> ways_;
  std::vector<std::vector<int>> orders_;
};

// rings.cpp: chains of all groups for the best speed found; ring c is made of chain c of each, over
// other ways within the groups where that loads links less.
struct Found {
  std::vector<std::vector<Chain>> chains;  // by group; empty: none fit
  std::vector<Ring> rings;
  double total = 0;  // GB/s of all rings
};
Found find_chains(Paths& paths, const std::vector<int>& nodes, const std::vector<Group>& groups,
                  const SearchOptions& options);
double total_of(const Graph& graph, const std::vector<int>& nodes, const std::vector<Ring>& rings);

// trees.cpp
std::vector<Tree> trees_of(Paths& paths, const Layout& layout, const std::vector<Group>& groups,
                           const std::vector<std::vector<Chain>>& chains);
// Parents of the first and of the second of two complementary binary trees over 0..n-1.
std::pair<std::vector<int>, std::vector<int>> double_tree(int n);

}  // namespace tessera::topology
