// What the builders of tile-triggered plans share: numbering of chunks and lanes, and the waits and
// signals that tie a plan to tiles. Not for use outside of src/fusion.
#pragma once

#include <vector>

#include "algorithms/exchange.h"
#include "fusion/plans.h"

namespace tessera {

class Weaver {
 public:
  Weaver(const FusedPlanShape& shape, const char* name);

  int ranks() const { return shape_.ranks; }
  int chunks() const { return shape_.chunks; }
  bool returns() const { return shape_.collective == Collective::kAllReduce; }

  // The chunk of a block that chunk c of rank `owner` is.
  int in_block(int owner, int c) const { return returns() ? owner * chunks() + c : c; }
  // Chunk c of the block that belongs to `owner` (goes to it, or comes from it), in the matrix.
  int in_matrix(int owner, int c) const { return owner * chunks() + c; }
  // Where `rank` keeps a finished sum of its own.
  Ref result(int rank, int c) const { return output(rank, returns() ? in_matrix(rank, c) : c); }
  // The lane of chunk c of `owner` at `rank`: those that leave first have the first lanes. Tiles are
  // made, and used, from an owner's last chunk to its first, and so chunks are sent.
  LaneRef lane(int rank, int owner, int c) {
    const int hop = wrap(rank - 1 - owner, ranks());
    return plan_.lane(rank, (hop * chunks() + chunks() - 1 - c) % lanes_);
  }

  bool any_order() const { return shape_.any_order && ranks() > 2; }
  // The lane on which `rank` adds the part of rank `from` to its own chunk c: no part waits behind
  // another's as far as there are lanes.
  LaneRef adding_lane(int rank, int from, int c) {
    const int hop = wrap(rank - 1 - from, ranks());
    return plan_.lane(rank, lanes_ + (hop * chunks() + chunks() - 1 - c) % adding_lanes_);
  }
  // A slot of `rank` that parts are accumulated in.
  struct Sum {
    Ref slot;
    int tally = 0;  // raised by each part
    int read = 0;   // raised by who reads the sum: parts of the next pass wait for it
  };
  Sum sum(int rank);

  // New slots for chunk 0, 1, ... on the way from one rank to another.
  std::vector<Slot> slots(int from, int to);
  const Exchange& exchange() const { return exchange_; }

  int counter(int rank) { return plan_.counter(rank); }  // a new one
  // The step reads input chunk `chunk` of `rank`: it waits for the tiles over it.
  void await_tiles(StepRef step, int chunk) const;
  // The step copies chunk c of the input's part of some rank into the slot.
  void send(StepRef step, const Slot& slot, int c);
  // The step of `rank` writes its output chunk `chunk`.
  void tell_landed(StepRef step, int rank, int chunk) const;

  Plan finish();

 private:
  const FusedPlanShape& shape_;
  FusedCounters counters_;
  PlanBuilder plan_;
  Exchange exchange_;
  int lanes_, adding_lanes_;
  std::vector<Slot> stored_;  // by kernels
};

// The builders, by mapping; shape.ranks > 1 or not.
void weave_ring_sums(Weaver& weaver);
void weave_ring_gather(Weaver& weaver);
void weave_direct_sums(Weaver& weaver);
void weave_direct_gather(Weaver& weaver);
void weave_all_to_all(Weaver& weaver);
void weave_onto_sums(Weaver& weaver);

}  // namespace tessera
