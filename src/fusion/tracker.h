// The tracker: counts the tiles of an operator's input and raises the counters of the chunks that a
// finished tile touches. The second half of a trigger, what comes in from peers, is counted by the
// plan's step counters; the step waits for both.
//
//   tile reported --> its tally, `parts` times a launch --> last part: +1 on every chunk it touches
//
// A chunk's counter has a cache line of its own, in the region of the linked plan. Tallies are eight
// to a line: tiles next to each other are mostly made by one thread.
//
// Thread safety: report() from any thread; the rest too.
// Guarantee (I5): what a thread stored before report() of a tile's last part, and the threads that
// reported the other parts before theirs, is visible to every step that the tile's chunks gate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusion/geometry.h"
#include "sync/counter.h"
#include "sync/tally.h"

namespace tessera {

class Tracker {
 public:
  enum class Report : uint8_t {
    kCounted,
    kLook,      // ... and it is time to look at what the plan may do
    kComplete,  // ... as the last tile of a chunk
    kTwice,     // reported as often as this launch allows: not counted
  };

  // `counters`: of chunk 0, 1, ... of the input, as many as have rows; they stand at `first_pass`
  // launches.
  Tracker(const TileGrid& grid, const RowChunks& chunks, int32_t parts, PaddedCounter* counters,
          int count, uint64_t first_pass);

  const TileGrid& grid() const { return grid_; }

  // The tile (row, col), which is in the grid, for launch number `launch` (from 0) of this tracker.
  Report report(int64_t row, int64_t col, uint64_t launch);

  // Tiles of a chunk between two looks at the plan's steps: a power of two. Not while tiles come.
  void set_every(int every) { look_mask_ = static_cast<uint64_t>(every) - 1; }

  // Of the tiles, row by row: where device code reports (tessera/tile_device.h).
  Tally* tallies() { return tallies_.data(); }

  // Tiles that launch number `launch` still lacks: "3 of 64 tiles are missing: (0,4) (1,4) (2,4)";
  // empty when there are none.
  std::string missing(uint64_t launch) const;
  // True if no tile was reported for a launch after `launches`.
  bool clean(uint64_t launches) const;
  // Grows with every tile that is complete.
  uint64_t arrived() const;

 private:
  TileGrid grid_;
  RowChunks chunks_;
  uint64_t parts_;
  int64_t across_;
  PaddedCounter* counters_;
  std::vector<uint64_t> arrivals_;  // per chunk and launch
  uint64_t first_pass_;
  uint64_t look_mask_ = 15;
  std::vector<Tally> tallies_;
};

}  // namespace tessera
