#include "algorithms/trees.h"

#include <utility>

namespace tessera {
namespace {

// Appends the children's slots to dsts.
void add_children(const Tree& tree, int rank, const std::vector<Slot>& down,
                  std::vector<Ref>& dsts) {
  for (const int child : tree.children[rank]) dsts.push_back(down[child].ref());
}

void fill_children(const Exchange& exchange, const Tree& tree, int rank, StepRef step,
                   const std::vector<Slot>& down) {
  for (const int child : tree.children[rank]) exchange.fill(step, down[child]);
}

}  // namespace

Tree make_tree(std::vector<int> parent) {
  Tree tree;
  tree.children.resize(parent.size());
  for (int rank = 0; rank < static_cast<int>(parent.size()); ++rank) {
    if (parent[rank] < 0) {
      tree.root = rank;
    } else {
      tree.children[parent[rank]].push_back(rank);
    }
  }
  tree.parent = std::move(parent);
  return tree;
}

std::vector<Slot> slots_up(Exchange& exchange, const Tree& tree) {
  std::vector<Slot> slots(tree.parent.size());
  for (int rank = 0; rank < static_cast<int>(slots.size()); ++rank) {
    if (rank != tree.root) slots[rank] = exchange.slot(rank, tree.parent[rank]);
  }
  return slots;
}

std::vector<Slot> slots_down(Exchange& exchange, const Tree& tree) {
  std::vector<Slot> slots(tree.parent.size());
  for (int rank = 0; rank < static_cast<int>(slots.size()); ++rank) {
    if (rank != tree.root) slots[rank] = exchange.slot(tree.parent[rank], rank);
  }
  return slots;
}

void climb(PlanBuilder& plan, const Exchange& exchange, const Tree& tree, int rank, int chunk,
           int lane, const std::vector<Slot>& up, const std::vector<Slot>* down) {
  const bool is_root = rank == tree.root;
  std::vector<Ref> srcs{input(rank, chunk)};
  for (const int child : tree.children[rank]) srcs.push_back(up[child].ref());
  std::vector<Ref> dsts{is_root ? output(rank, chunk) : up[rank].ref()};
  if (is_root && down != nullptr) add_children(tree, rank, *down, dsts);
  LaneRef steps = plan.lane(rank, lane);
  StepRef step = tree.children[rank].empty()
                     ? steps.copy(chunk, std::move(dsts), srcs[0])
                     : steps.reduce(chunk, std::move(dsts), std::move(srcs));
  for (const int child : tree.children[rank]) exchange.take(step, up[child]);
  if (!is_root) exchange.fill(step, up[rank]);
  if (is_root && down != nullptr) fill_children(exchange, tree, rank, step, *down);
}

void descend(PlanBuilder& plan, const Exchange& exchange, const Tree& tree, int rank, int chunk,
             int lane, const std::vector<Slot>& down) {
  if (rank == tree.root) return;
  std::vector<Ref> dsts;
  add_children(tree, rank, down, dsts);
  dsts.push_back(output(rank, chunk));
  StepRef step = plan.lane(rank, lane).copy(chunk, std::move(dsts), down[rank].ref());
  exchange.take(step, down[rank]);
  fill_children(exchange, tree, rank, step, down);
}

void start_down(PlanBuilder& plan, const Exchange& exchange, const Tree& tree, int chunk,
                const std::vector<Slot>& down) {
  const int root = tree.root;
  std::vector<Ref> dsts;
  add_children(tree, root, down, dsts);
  dsts.push_back(output(root, chunk));
  StepRef step = plan.lane(root).copy(chunk, std::move(dsts), input(root, chunk));
  fill_children(exchange, tree, root, step, down);
}

}  // namespace tessera
