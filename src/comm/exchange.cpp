#include "comm/exchange.h"

#include "base/hash.h"
#include "comm/sleep.h"

namespace tessera {
namespace {

constexpr std::chrono::milliseconds kLongestFlush{200};

// Tells set-up calls apart: what is done and among whom.
uint64_t occasion_of(std::span<const int> members, const char* what) {
  return Hash().text(what).bytes(members.data(), members.size_bytes()).value();
}

}  // namespace

Status SetupExchange::gather(std::span<const int> members, const void* mine, void* all,
                             size_t bytes, const char* what, Deadline deadline) {
  const auto inside = core_.enter();
  return gather_inside(members, mine, all, bytes, what, deadline);
}

Status SetupExchange::gather_inside(std::span<const int> members, const void* mine, void* all,
                                    size_t bytes, const char* what, Deadline deadline) {
  const uint64_t occasion = occasion_of(members, what);
  for (const int peer : members) {
    if (peer == core_.rank) continue;
    SetupBox& box = core_.view.pair(peer, core_.rank).setup;
    // The box is free once the peer took all earlier messages.
    if (Status s = await(box.taken.counter, posted_[peer], peer, what, deadline); !s.ok()) return s;
    box.occasion = occasion;
    std::memcpy(box.payload.data(), mine, bytes);
    box.posted.counter.publish(1);
    ++posted_[peer];
    core_.share(peer, &box.occasion, sizeof box.occasion);
    core_.share(peer, box.payload.data(), bytes);
    core_.share_value(peer, box.posted.counter);
    core_.ring(peer);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    auto* to = static_cast<std::byte*>(all) + i * bytes;
    const int peer = members[i];
    if (peer == core_.rank) {
      std::memcpy(to, mine, bytes);
      continue;
    }
    SetupBox& box = core_.view.pair(core_.rank, peer).setup;
    // What an earlier set-up call that failed left in the box is passed over.
    for (bool ours = false; !ours;) {
      if (Status s = await(box.posted.counter, taken_[peer] + 1, peer, what, deadline); !s.ok())
        return s;
      ours = box.occasion == occasion && box.revoked.counter.value() <= taken_[peer];
      if (ours) std::memcpy(to, box.payload.data(), bytes);
      box.taken.counter.publish(1);
      ++taken_[peer];
      core_.share_value(peer, box.taken.counter);
      core_.ring(peer);
    }
  }
  // Over several rails all must be acknowledged, which nobody does who is done here and busy
  // elsewhere: later progress() sees to the rest.
  if (core_.ports) core_.ports->flush(kLongestFlush);
  return {};
}

// After a failure: messages that were not taken would be taken for those of a later try.
void SetupExchange::revoke(std::span<const int> members) {
  const auto inside = core_.enter();
  for (const int peer : members) {
    if (peer == core_.rank) continue;
    SetupBox& box = core_.view.pair(peer, core_.rank).setup;
    if (box.taken.counter.reached(posted_[peer])) continue;
    box.revoked.counter.publish_value(posted_[peer]);
    core_.share_value(peer, box.revoked.counter);
  }
}

Status SetupExchange::await(const Counter& counter, uint64_t target, int peer, const char* what,
                            Deadline deadline) {
  const Core* const own[] = {&core_};
  Idle idle(core_.yields);
  core_.progress();
  for (int i = 0; i < core_.spins; ++i) {
    if (counter.reached(target)) return {};
    pause();
  }
  while (!counter.reached(target)) {
    if (idle.next() == Idle::Action::kYield) {
      yield_outside(own);
      if (core_.progress()) idle.reset();
      continue;
    }
    sleep_until_rung(own, [&] { return core_.progress() || counter.value() >= target; });
    core_.progress();
    // Who ended may have done its part before: the counter is looked at after its end was seen.
    const bool dead = core_.health->peer_dead(peer);
    const bool left = core_.view.rank(peer).left.raised();
    if (counter.reached(target)) return {};
    if (const std::string* why = dead ? core_.health->connection_lost(peer) : nullptr)
      return Status::error(Code::kRemote, "{}: {}: {}", core_.health->who(), what, *why);
    if (dead) {
      return Status::error(Code::kRemote, "{}: {}: the process of rank {} has ended",
                           core_.health->who(), what, peer);
    }
    if (left) {
      return Status::error(Code::kRemote, "{}: {}: rank {} has destroyed its communicator",
                           core_.health->who(), what, peer);
    }
    if (core_.health->aborted()) return core_.health->status();
    if (deadline.passed()) {
      return Status::error(Code::kTimeout,
                           "{}: {}: rank {} has not joined in within the deadline "
                           "(TESSERA_TIMEOUT_MS); every rank must "
                           "make this call",
                           core_.health->who(), what, peer);
    }
  }
  return {};
}

}  // namespace tessera
