// Passes descriptors between the ranks of a host that form a communicator, as long as they live.
// Thread safety: one thread at a time per object.
#pragma once

#include <chrono>
#include <span>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "comm/core.h"
#include "comm/liveness.h"

namespace tessera {

// What a descriptor is. Other tags are ids of allocations, which count from one.
inline constexpr uint64_t kSegmentTag = ~uint64_t{0};
inline constexpr uint64_t kPokeTag = ~uint64_t{0} - 1;

class HandOver {
 public:
  // Both outlive this. Of the core, members and mailbox are there.
  HandOver(Core& core, const Liveness& liveness, Deadline deadline)
      : core_(core), liveness_(liveness), deadline_(deadline) {}

  // To all other ranks of this host; who has ended does not keep it from the rest. The first
  // trouble: kRemote naming a rank that has ended, given up or is stopped; kTimeout; kSystem.
  Status send_to_neighbours(const Fd& fd, uint64_t tag);
  // The same errors; once the segment is mapped, those of look(), too. What a rank sent before it
  // ended is received.
  Result<Fd> receive(int peer, uint64_t tag);
  // While this rank waits for something else, the segment being mapped: what a rank of this host has
  // found wrong, or that one has ended; looks now and then only.
  Status look();

 private:
  Status send(int peer, const Fd& fd, uint64_t tag);
  Deadline soon() const;
  Status ended(std::span<const int> ranks) const;
  Status closed(int peer) const;
  Status late(const Status& overdue) const;

  Core& core_;
  const Liveness& liveness_;
  const Deadline deadline_;
  Deadline next_look_ = Deadline::after(std::chrono::nanoseconds(0));
};

}  // namespace tessera
