#include "comm/visit.h"

#include "base/deadline.h"
#include "base/log.h"
#include "sync/fence.h"

namespace tessera {

Status Visit::begin() {
  core_.area().direct_begun.counter.publish(1);
  inside_ = true;
  full_fence();
  return core_.health->good() ? Status() : core_.health->status();
}

void await_visitors(Core& core) {
  core.health->await_claim();
  full_fence();
  const Deadline deadline = Deadline::after(std::chrono::seconds(2));
  for (int peer = 0; peer < core.ranks; ++peer) {
    if (core.elsewhere(peer)) continue;
    const RankArea& area = core.view.rank(peer);
    // Ended is read first: a run that begins in between only makes this wait longer.
    for (;;) {
      const uint64_t ended = area.direct_ended.counter.value();
      if (!area.direct_begun.counter.reached(ended + 1)) break;
      if (core.health->peer_dead(peer)) break;
      if (deadline.passed()) {
        log::warn(
            core.rank,
            "{}: rank {} may still be inside buffers of a call that failed; do not reuse them "
            "before its process has ended",
            core.health->who(), peer);
        break;
      }
      yield();
    }
  }
}

}  // namespace tessera
