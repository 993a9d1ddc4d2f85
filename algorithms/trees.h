// Trees that data climbs (reduce) and descends (broadcast), chunk by chunk.
#pragma once

#include <vector>

#include "algorithms/exchange.h"

namespace tessera {

struct Tree {
  int root = 0;
  std::vector<int> parent;  // by rank; -1 for the root
  std::vector<std::vector<int>> children;
};

// Builds the lists of children. Ranks of one parent in ascending order.
Tree make_tree(std::vector<int> parent);

// A tree with the slots of one chunk on its edges, by child.
struct Way {
  Tree tree;
  std::vector<Slot> slots;
};
Way way_up(Exchange& exchange, Tree tree);    // slots at the parent
Way way_down(Exchange& exchange, Tree tree);  // slots at the child

// What travels: a chunk of the inputs that becomes a chunk of the outputs, and which of a block it
// is.
struct Cargo {
  int in = 0, out = 0, chunk = 0;
  static Cargo same(int chunk) { return {chunk, chunk, chunk}; }
};

// A rank adds its children's sums to its input and passes the sum on, in the given lane. The root
// leaves it in its output and, if `down` is given, starts it on its way down in the same step.
void climb(PlanBuilder& plan, const Exchange& exchange, const Way& up, int rank, Cargo cargo,
           int lane, const Way* down);

// A rank that is not the root keeps what its parent sent and passes it on, in the given lane.
void descend(PlanBuilder& plan, const Exchange& exchange, const Way& down, int rank, Cargo cargo,
             int lane);

// The root's step down when its data is its input.
void start_down(PlanBuilder& plan, const Exchange& exchange, const Way& down, Cargo cargo);

}  // namespace tessera
