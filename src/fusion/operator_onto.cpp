// Tiles that are added onto the output of a peer, and the end of its visits to the own one.
#include "base/deadline.h"
#include "base/log.h"
#include "fusion/operator.h"

namespace tessera {

Result<FusedOperator::TilePlace> FusedOperator::tile_onto(int64_t row, int64_t col) {
  if (Status s = check_tile(row, col); !s.ok()) return s;
  if (!core_.health->good()) return core_.health->status();
  const uint64_t launch = finished_.counter.value(), target = onto_->target(launch);
  if (!launched_.counter.reached(launch + 1)) {
    return Status::error(Code::kInvalidUsage,
                         "{}: {}: tile ({},{}) has no place yet: launch {} has not begun, or the "
                         "tile was made in the one before",
                         core_.health->who(), describe(description_), row, col, launch + 1);
  }
  const int owner = onto_->owner(row);
  if (Status s = await(onto_->begun(), target); !s.ok()) return s;
  if (owner != core_.rank) {
    const Visited visited{row, col, owner};
    if (Status s = await(onto_->opening(row, col), target, &visited); !s.ok()) return s;
  }
  const Onto::Taken taken = onto_->take(row, col, launch);
  if (taken != Onto::Taken::kYes) return not_taken(row, col, taken);
  const Onto::Place place = onto_->place(row, col);
  return TilePlace{place.first, place.ld, owner != core_.rank};
}

// kYes: it should have been taken.
Status FusedOperator::not_taken(int64_t row, int64_t col, Onto::Taken how) const {
  const int owner = onto_->owner(row);
  if (how == Onto::Taken::kClosed) {
    if (!core_.health->good()) return core_.health->status();
    return Status::error(Code::kRemote,
                         "{}: {}: rank {}, which owns tile ({},{}), has ended its launch",
                         core_.health->who(), describe(description_), owner, row, col);
  }
  return Status::error(Code::kInvalidUsage, "{}: {}: tile ({},{}) {}", core_.health->who(),
                       describe(description_), row, col,
                       how == Onto::Taken::kTwice
                           ? "was asked for twice in a launch; it may be added once"
                           : "was reported, but its place was not asked for in this launch");
}

// A visit lasts as long as the peer's kernel takes for a tile; one that is never reported never ends.
void FusedOperator::take_back_output() {
  if (!onto_) return;
  onto_->bar();
  const Deadline deadline = Deadline::after(core_.config.timeout);
  while (!onto_->empty()) {
    if (deadline.passed()) {
      log::warn(core_.rank,
                "{}: {}: rank {} may still add to the output of a launch that failed: it has not "
                "reported a tile; do not reuse the output before its process has ended",
                core_.health->who(), describe(description_), 1 - core_.rank);
      return;
    }
    yield();
  }
}

}  // namespace tessera
