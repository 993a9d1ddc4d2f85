#include "algorithms/trees.h"

#include <utility>

namespace tessera {
namespace {

// Appends the children's slots to dsts.
void add_children(const Way& down, int rank, std::vector<Ref>& dsts) {
  for (const int child : down.tree.children[rank]) dsts.push_back(down.slots[child].ref());
}

void fill_children(const Exchange& exchange, const Way& down, int rank, StepRef step) {
  for (const int child : down.tree.children[rank]) exchange.fill(step, down.slots[child]);
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

Way way_up(Exchange& exchange, Tree tree) {
  Way way{std::move(tree), {}};
  way.slots.resize(way.tree.parent.size());
  for (int rank = 0; rank < static_cast<int>(way.slots.size()); ++rank) {
    if (rank != way.tree.root) way.slots[rank] = exchange.slot(rank, way.tree.parent[rank]);
  }
  return way;
}

Way way_down(Exchange& exchange, Tree tree) {
  Way way{std::move(tree), {}};
  way.slots.resize(way.tree.parent.size());
  for (int rank = 0; rank < static_cast<int>(way.slots.size()); ++rank) {
    if (rank != way.tree.root) way.slots[rank] = exchange.slot(way.tree.parent[rank], rank);
  }
  return way;
}

void climb(PlanBuilder& plan, const Exchange& exchange, const Way& up, int rank, Cargo cargo,
           int lane, const Way* down) {
  const bool is_root = rank == up.tree.root;
  const std::vector<int>& children = up.tree.children[rank];
  std::vector<Ref> srcs{input(rank, cargo.in)};
  for (const int child : children) srcs.push_back(up.slots[child].ref());
  std::vector<Ref> dsts{is_root ? output(rank, cargo.out) : up.slots[rank].ref()};
  if (is_root && down != nullptr) add_children(*down, rank, dsts);
  LaneRef steps = plan.lane(rank, lane);
  StepRef step = children.empty() ? steps.copy(cargo.chunk, std::move(dsts), srcs[0])
                                  : steps.reduce(cargo.chunk, std::move(dsts), std::move(srcs));
  for (const int child : children) exchange.take(step, up.slots[child]);
  if (!is_root) exchange.fill(step, up.slots[rank]);
  if (is_root && down != nullptr) fill_children(exchange, *down, rank, step);
}

void descend(PlanBuilder& plan, const Exchange& exchange, const Way& down, int rank, Cargo cargo,
             int lane) {
  std::vector<Ref> dsts;
  add_children(down, rank, dsts);
  dsts.push_back(output(rank, cargo.out));
  StepRef step = plan.lane(rank, lane).copy(cargo.chunk, std::move(dsts), down.slots[rank].ref());
  exchange.take(step, down.slots[rank]);
  fill_children(exchange, down, rank, step);
}

void start_down(PlanBuilder& plan, const Exchange& exchange, const Way& down, Cargo cargo) {
  const int root = down.tree.root;
  std::vector<Ref> dsts;
  add_children(down, root, dsts);
  dsts.push_back(output(root, cargo.out));
  StepRef step = plan.lane(root).copy(cargo.chunk, std::move(dsts), input(root, cargo.in));
  fill_children(exchange, down, root, step);
}

}  // namespace tessera
