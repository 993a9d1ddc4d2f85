#include "comm/hand_over.h"

#include <algorithm>

#include "comm/liveness.h"
#include "sync/counter.h"

namespace tessera {

Deadline HandOver::soon() const {
  return Deadline::after(std::min<std::chrono::nanoseconds>(deadline_.left(), kBetweenLooks));
}

Status HandOver::ended(std::span<const int> ranks) const {
  return Status::error(Code::kRemote, "rank {}: {} during initialisation", core_.rank,
                       ended_text(ranks));
}

Status HandOver::late(const Status& overdue) const {
  return liveness_.explain(fmt::format("rank {}", core_.rank), overdue);
}

// A process that is killed closes its sockets shortly before it counts as ended.
Status HandOver::closed(int peer) const {
  const Deadline deadline = soon();
  while (!liveness_.dead(peer) && !deadline.passed()) yield();
  if (liveness_.dead(peer)) return ended({&peer, 1});
  return Status::error(Code::kRemote,
                       "rank {}: rank {} has given up initialising; its own error says why",
                       core_.rank, peer);
}

Status HandOver::send(int peer, const Fd& fd, uint64_t tag) {
  for (;;) {
    const Status tried = core_.mailbox->send(core_.socket_names[peer], fd.get(), tag, soon());
    if (tried.code() == Code::kRemote) return closed(peer);
    if (tried.code() != Code::kTimeout) return tried;
    if (deadline_.passed()) return late(tried);
  }
}

Status HandOver::send_to_neighbours(const Fd& fd, uint64_t tag) {
  Status first;
  for (const int peer : core_.neighbours()) {
    if (peer == core_.rank) continue;
    Status s = send(peer, fd, tag);
    if (first.ok()) first = std::move(s);
  }
  return first;
}

Result<Fd> HandOver::receive(int peer, uint64_t tag) {
  for (;;) {
    const bool dead = liveness_.dead(peer);  // seen before the last look at what it sent
    Result<Fd> tried = core_.mailbox->receive(peer, tag, soon());
    if (tried.ok() || tried.status().code() != Code::kTimeout) return tried;
    if (dead) return ended({&peer, 1});
    if (core_.segment) {
      if (Status s = look(); !s.ok()) return s;
    }
    if (deadline_.passed()) return late(tried.status());
  }
}

Status HandOver::look() {
  if (!next_look_.passed()) return {};
  next_look_ = soon();
  if (const ErrorRecord* record = core_.view.header().error.get()) return record->status();
  const std::vector<int> dead = liveness_.dead_among(core_.neighbours());
  return dead.empty() ? Status() : ended(dead);
}

}  // namespace tessera
