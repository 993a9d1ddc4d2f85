// Which rank uses which card: a matching, and from it the rails.
//
//   gpu0 -- nic1        each GPU gets a card of its own where there are enough; the sum of the
//   gpu1 -- nic0        distances is least; among equals the order of the indices is kept.
//
// With fewer cards than ranks each card serves up to ceil(ranks / cards) of them; with more, the
// cards left over are matched again, as long as there is one for each. A rail is a port, with the
// rank that it was matched with as its head; first come the first cards of all ranks, in their
// order, then the second ones.
//
// Cost: an assignment problem, O(r^2 s) for r ranks and s seats at cards; beyond 512 ranks or some
// 10^8 steps, each takes the nearest free card in turn.
#include <algorithm>
#include <limits>
#include <set>

#include "topology/search_parts.h"

namespace tessera::topology {
namespace {

constexpr size_t kMostExact = 512;
constexpr size_t kMostExactSteps = size_t{1} << 28;  // ranks^2 * seats

// Rows to columns at least cost, rows <= columns: shortest augmenting paths with potentials
// (Hungarian method, in the form of Jonker and Volgenant). Column of each row.
std::vector<int> assign(const std::vector<std::vector<double>>& cost) {
  const size_t rows = cost.size(), columns = cost.empty() ? 0 : cost.front().size();
  const double far = std::numeric_limits<double>::infinity();
  std::vector<double> row_price(rows + 1, 0), column_price(columns + 1, 0);
  std::vector<size_t> row_of(columns + 1, 0), before(columns + 1, 0);  // 1-based; 0: free
  for (size_t row = 1; row <= rows; ++row) {
    row_of[0] = row;
    size_t column = 0;
    std::vector<double> least(columns + 1, far);
    std::vector<char> seen(columns + 1, 0);
    do {
      seen[column] = 1;
      const size_t at = row_of[column];
      double step = far;
      size_t next = 0;
      for (size_t c = 1; c <= columns; ++c) {
        if (seen[c] != 0) continue;
        const double reduced = cost[at - 1][c - 1] - row_price[at] - column_price[c];
        if (reduced < least[c]) {
          least[c] = reduced;
          before[c] = column;
        }
        if (least[c] < step) {
          step = least[c];
          next = c;
        }
      }
      for (size_t c = 0; c <= columns; ++c) {
        if (seen[c] != 0) {
          row_price[row_of[c]] += step;
          column_price[c] -= step;
        } else {
          least[c] -= step;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    for (; column != 0; column = before[column]) row_of[column] = row_of[before[column]];
  }
  std::vector<int> result(rows, -1);
  for (size_t c = 1; c <= columns; ++c) {
    if (row_of[c] > 0) result[row_of[c] - 1] = static_cast<int>(c) - 1;
  }
  return result;
}

// Each row in turn takes the cheapest column that is free.
std::vector<int> take_in_turn(const std::vector<std::vector<double>>& cost) {
  std::vector<int> result;
  std::vector<char> taken(cost.empty() ? 0 : cost.front().size(), 0);
  for (const std::vector<double>& row : cost) {
    int best = -1;
    for (size_t c = 0; c < row.size(); ++c) {
      if (taken[c] == 0 && (best < 0 || row[c] < row[best])) best = static_cast<int>(c);
    }
    if (best >= 0) taken[best] = 1;
    result.push_back(best);
  }
  return result;
}

// Distances as small whole numbers: the place of a path among all that occur here.
class Distances {
 public:
  Distances(Paths& paths, const Layout& layout, const Group& group, const std::vector<int>& nics) {
    std::vector<Reach> all;
    for (const int rank : group.ranks) {
      reach_.emplace_back();
      for (const int nic : nics) {
        reach_.back().push_back(paths.reach(layout.nodes[rank], nic));
        all.push_back(reach_.back().back());
      }
    }
    std::sort(all.begin(), all.end(),
              [](const Reach& a, const Reach& b) { return compare(a, b) < 0; });
    for (const Reach& reach : all) {
      if (sorted_.empty() || compare(sorted_.back(), reach) != 0) sorted_.push_back(reach);
    }
  }
  // A rank further away by one place outweighs any order of the indices.
  double cost(size_t rank, size_t nic, double rank_place, double seat_place) const {
    const Reach& reach = reach_[rank][nic];
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), reach,
                         [](const Reach& a, const Reach& b) { return compare(a, b) < 0; });
    const double off = rank_place - seat_place;
    return static_cast<double>(at - sorted_.begin()) + 1e-9 * off * off;
  }

 private:
  std::vector<std::vector<Reach>> reach_;
  std::vector<Reach> sorted_;
};

// Cards of the island; without a fabric those of the hosts of the group all the same.
std::vector<int> cards_of(Paths& paths, int island) {
  std::vector<int> cards;
  for (const int nic : paths.graph().of_kind(NodeKind::kNic)) {
    if (paths.island(nic) == island) cards.push_back(nic);
  }
  return cards;
}

std::vector<int> ports_of(const Graph& graph, int nic) {
  std::vector<int> ports;
  for (const int link : graph.out[nic]) {
    if (graph.nodes[graph.links[link].to].kind == NodeKind::kPort) {
      ports.push_back(graph.links[link].to);
    }
  }
  return ports;
}

// card_of[round][place]: an index into cards; -1: none.
std::vector<std::vector<int>> rounds_of(Paths& paths, const Layout& layout, const Group& group,
                                        const std::vector<int>& cards) {
  const Distances distances(paths, layout, group, cards);
  const size_t ranks = group.ranks.size();
  std::vector<size_t> open(cards.size());
  for (size_t i = 0; i < cards.size(); ++i) open[i] = i;
  std::vector<std::vector<int>> rounds;
  while (!open.empty()) {
    if (!rounds.empty() && open.size() < ranks) break;  // too few for all: idle
    const size_t seats = (ranks + open.size() - 1) / open.size();
    const double spread = static_cast<double>(ranks) / static_cast<double>(open.size() * seats);
    std::vector<std::vector<double>> cost(ranks);
    for (size_t r = 0; r < ranks; ++r) {
      for (size_t seat = 0; seat < open.size() * seats; ++seat) {
        cost[r].push_back(distances.cost(r, open[seat / seats], static_cast<double>(r),
                                         static_cast<double>(seat) * std::min(1.0, spread)));
      }
    }
    const bool exact =
        ranks <= kMostExact && ranks * ranks * open.size() * seats <= kMostExactSteps;
    std::vector<int> seat_of = exact ? assign(cost) : take_in_turn(cost);
    std::set<size_t> used;
    for (int& seat : seat_of) {
      if (seat < 0) continue;
      const size_t card = open[static_cast<size_t>(seat) / seats];
      used.insert(card);
      seat = static_cast<int>(card);
    }
    rounds.push_back(std::move(seat_of));
    std::erase_if(open, [&](size_t card) { return used.count(card) > 0; });
    if (used.empty()) break;
  }
  return rounds;
}

void add_rails(const Graph& graph, const std::vector<std::vector<int>>& rounds,
               const std::vector<int>& cards, Group& group) {
  std::set<int> taken;
  for (const std::vector<int>& round : rounds) {
    for (size_t nth = 0, more = 1; more > 0; ++nth) {
      more = 0;
      for (size_t place = 0; place < round.size(); ++place) {
        if (round[place] < 0) continue;
        const std::vector<int> ports = ports_of(graph, cards[round[place]]);
        if (nth + 1 < ports.size()) more = 1;
        if (nth < ports.size() && taken.insert(ports[nth]).second) {
          group.rails.push_back({ports[nth], static_cast<int>(place)});
        }
      }
    }
  }
}

}  // namespace

void assign_nics(Paths& paths, Layout& layout, std::vector<Group>& groups, bool several_groups) {
  layout.nic.assign(layout.nodes.size(), -1);
  layout.ports.resize(layout.nodes.size());
  for (Group& group : groups) {
    const std::vector<int> cards = cards_of(paths, paths.island(layout.nodes[group.ranks.front()]));
    if (cards.empty()) continue;
    const std::vector<std::vector<int>> rounds = rounds_of(paths, layout, group, cards);
    for (const std::vector<int>& round : rounds) {
      for (size_t place = 0; place < round.size(); ++place) {
        if (round[place] < 0) continue;
        const int rank = group.ranks[place];
        if (layout.nic[rank] < 0) layout.nic[rank] = cards[round[place]];
        for (const int port : ports_of(paths.graph(), cards[round[place]])) {
          layout.ports[rank].push_back(port);
        }
      }
    }
    if (several_groups) add_rails(paths.graph(), rounds, cards, group);
  }
}

std::vector<NicDistance> nic_distances(const Graph& graph, std::span<const int> rank_nodes) {
  Paths paths(graph);
  std::vector<NicDistance> all;
  for (size_t rank = 0; rank < rank_nodes.size(); ++rank) {
    std::vector<NicDistance> mine;
    for (const int nic : cards_of(paths, paths.island(rank_nodes[rank]))) {
      mine.push_back({static_cast<int>(rank), nic, paths.between(rank_nodes[rank], nic)});
    }
    std::stable_sort(mine.begin(), mine.end(), [](const NicDistance& a, const NicDistance& b) {
      return compare(a.path, b.path) < 0;
    });
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

}  // namespace tessera::topology
