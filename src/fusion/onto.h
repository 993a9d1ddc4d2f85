// Tiles that are added onto the memory of the rank that owns them: sums of two ranks of one process
// without parts in between.
//
//   owner                                  visitor
//   stores its tile into its output
//   tile_done(): opening of the tile  -->  tile_onto(): through the door, adds its own tile on top
//   its sum lands                     <--  tile_done(): leaves, raises the counter of the chunk
//
// So each element is written once by its owner, then added to once by the peer: an order that does
// not depend on timing. In the plan (plans_onto.cpp) both are steps, which move nothing here.
//
// A rank's side lies in its region, behind the counters of the plan: the door to its output, where
// that is, and an opening for each tile. The door is open from the begin of a launch to its end, of
// whatever kind. Counters are not reset: launch e of the linked plan waits for e + 1 (I3).
//
// Why no visitor writes where it must not: it comes in after the opening of its tile in this launch,
// and the launch of the owner ends well only after the tile was reported (the plan's counters). Who
// ends it otherwise bars the door for good and waits until it is empty: the communicator has failed.
// The step of an all-reduce that reads a peer's output goes through its door, too.
//
// Thread safety: as said at each member.
#pragma once

#include <vector>

#include "comm/plan_store.h"
#include "fusion/geometry.h"
#include "fusion/matrix_space.h"
#include "sync/door.h"
#include "sync/tally.h"

namespace tessera {

class Onto {
 public:
  // What a rank's region needs for it.
  static size_t region_bytes(const FusedDescription& description);
  // Null, or why the tiles of these operators cannot be added where their owner has them.
  static const char* obstacle(const FusedDescription& description, int ranks);

  Onto(const FusedDescription& description, const Geometry& geometry, int rank,
       const LinkedPlan& linked);

  // The output of a rank in its present launch; stays where it is.
  const Matrix& output(int rank) const { return side(rank).output; }

  // A launch of the own rank begins: the one before is over. One thread at a time.
  void begin(const Matrix& output);
  // It ends: nobody comes in any more. Any thread, any number of times.
  void close() { side(rank_).door.close(); }
  // The same for good.
  void bar() { side(rank_).door.bar(); }
  // Nobody is inside the own output.
  bool empty() const { return side(rank_).door.empty(); }

  // A step's visit to the output of the peer. False: its launch has failed.
  bool enter_peer() { return side(1 - rank_).door.enter(); }
  void leave_peer() { side(1 - rank_).door.leave(); }

  // Any thread. A tile counts to the rank that owns its rows.
  int owner(int64_t row) const { return row * tile_rows_ < block_rows_ ? 0 : 1; }
  // Raised when launch number `launch` (from 0) of this operator has begun here.
  const Counter& begun() const { return side(rank_).begun.counter; }
  // Raised in each launch when the owner has stored the tile.
  const Counter& opening(int64_t row, int64_t col) const;
  uint64_t target(uint64_t launch) const { return first_pass_ + launch + 1; }

  enum class Taken : uint8_t { kYes, kTwice, kClosed };
  // The calling thread is to make the tile, whose opening has come if it is another's.
  Taken take(int64_t row, int64_t col, uint64_t launch);
  // The tile was taken for this launch.
  bool taken(int64_t row, int64_t col, uint64_t launch) const {
    return taken_[index(row, col)].value() > launch;
  }
  // The tile, which was taken, is made: opens it to the peer, or leaves the peer.
  void made(int64_t row, int64_t col);

  struct Place {
    std::byte* first = nullptr;
    int64_t ld = 0;
  };
  // Where the tile lies in its owner's output. After begun() or the tile's opening.
  Place place(int64_t row, int64_t col) const;

 private:
  // Zeroed memory is valid.
  struct alignas(kCacheLine) Side {
    Door door;
    PaddedCounter begun;
    Matrix output;  // written while no launch is under way
    // The openings follow, row by row; eight to a line, as tallies are (tracker.h).
  };

  size_t index(int64_t row, int64_t col) const { return static_cast<size_t>(row * across_ + col); }
  Side& side(int rank) const { return *sides_[rank]; }

  int rank_;
  int64_t tile_rows_, tile_cols_, across_, block_rows_;
  size_t element_bytes_;
  bool column_major_, whole_;  // outputs are the whole matrix
  uint64_t first_pass_;
  Side* sides_[2];
  std::vector<Tally> taken_;
};

}  // namespace tessera
