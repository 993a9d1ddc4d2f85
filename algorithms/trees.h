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

// Slots of one chunk on every edge of the tree, by child.
std::vector<Slot> slots_up(Exchange& exchange, const Tree& tree);    // at the parent
std::vector<Slot> slots_down(Exchange& exchange, const Tree& tree);  // at the child

// A rank adds its children's sums to its input and passes the sum on, in the given lane. The root
// leaves it in its output and, if `down` is given, starts it on its way down in the same step.
void climb(PlanBuilder& plan, const Exchange& exchange, const Tree& tree, int rank, int chunk,
           int lane, const std::vector<Slot>& up, const std::vector<Slot>* down);

// A rank keeps what its parent sent and passes it on, in the given lane; the root, which has
// started it, does nothing.
void descend(PlanBuilder& plan, const Exchange& exchange, const Tree& tree, int rank, int chunk,
             int lane, const std::vector<Slot>& down);

// The root's step down when its data is its input.
void start_down(PlanBuilder& plan, const Exchange& exchange, const Tree& tree, int chunk,
                const std::vector<Slot>& down);

}  // namespace tessera
