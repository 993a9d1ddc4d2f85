#include "emulated/support/team.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/nap.h"
#include "sync/barrier.h"

namespace tessera::emulated {

SharedBlock::SharedBlock(size_t bytes)
    : bytes_(bytes),
      base_(static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  if (base_ == MAP_FAILED) std::abort();
}

SharedBlock::~SharedBlock() { munmap(base_, bytes_); }

bool Log::signalled(int peer, const PortSignal& signal) {
  if (signal.position == refused_position) return false;
  arrivals.push_back({peer, signal, now_ns()});
  return true;
}

void Log::closed(int peer, const Status& why) { ends.emplace_back(peer, why.message()); }

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

Team::Team(Links links)
    : links_(std::make_shared<const Links>(std::move(links))),
      block_(shared_bytes(*links_) + static_cast<size_t>(links_->ranks) * sizeof(Doorbell)),
      logs_(static_cast<size_t>(links_->ranks)) {
  register_for_barriers();
  auto* bells = reinterpret_cast<Doorbell*>(block_.base() + shared_bytes(*links_));
  for (int rank = 0; rank < ranks(); ++rank) doorbells_.push_back(bells + rank);
  for (int rank = 0; rank < ranks(); ++rank)
    engines_.push_back(make_engine(links_, rank, block_.base(), doorbells_, log(rank)));
}

void Team::sleep(int rank) {
  const auto longest = std::chrono::nanoseconds(std::chrono::seconds(1));
  Doorbell& bell = doorbell(rank);
  const Sleeper sleeper{&bell, bell.prepare()};
  if (!engine(rank).progress()) {
    // after prepare(): a message that came before it may be due sooner
    const auto nap = Alarm().nap(engine(rank).due_in());
    if (nap.count() > 0) sleep_any(&sleeper, 1, std::min(nap, longest));
  }
  bell.cancel();
}

}  // namespace tessera::emulated
