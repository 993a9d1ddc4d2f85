// Who sits beside whom: ranks at the places of a ring, for algorithms in which neighbours talk most.
//
//      AlgorithmParams::order  0 2 1 3        place  0 1 2 3        0 -- 2
//                                             rank   0 2 1 3        |    |      2 and 1 are
//                                                                   3 -- 1      neighbours
//
// Pure functions.
#pragma once

#include <vector>

#include "algorithms/exchange.h"

namespace tessera {

class Places {
 public:
  explicit Places(const AlgorithmParams& params) : ranks_(params.ranks) {
    if (params.first_only) return;
    order_ = params.order;
    place_.resize(order_.size());
    for (int place = 0; place < static_cast<int>(order_.size()); ++place)
      place_[order_[place]] = place;
  }

  // Places are counted round and round.
  int rank(int place) const {
    const int at = wrap(place, ranks_);
    return order_.empty() ? at : order_[at];
  }
  int place(int rank) const { return place_.empty() ? rank : place_[rank]; }
  // Of a slot that every rank has, as rank 0 has it: that at `place`, filled from the place before.
  Slot at(const Slot& slot, int place) const {
    return {rank(place - 1), rank(place), slot.first, slot.chunks, slot.arrived, slot.credit};
  }

 private:
  int ranks_;
  std::vector<int> order_, place_;
};

}  // namespace tessera
