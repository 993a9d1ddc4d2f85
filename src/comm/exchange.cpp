#include "comm/exchange.h"

#include "comm/idle.h"

namespace tessera {
namespace {

// Tells set-up calls apart: what is done and among whom (FNV-1a).
uint64_t occasion_of(std::span<const int> members, const char* what) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const char* c = what; *c != '\0'; ++c) add(static_cast<unsigned char>(*c));
  for (const int member : members) add(static_cast<uint64_t>(member) + 256);
  return hash;
}

}  // namespace

Status Exchange::gather(std::span<const int> members, const void* mine, void* all, size_t bytes,
                        const char* what, Deadline deadline) {
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
    core_.doorbells[peer]->ring();
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
      core_.doorbells[peer]->ring();
    }
  }
  return {};
}

// After a failure: messages that were not taken would be taken for those of a later try.
void Exchange::revoke(std::span<const int> members) {
  for (const int peer : members) {
    if (peer == core_.rank) continue;
    SetupBox& box = core_.view.pair(peer, core_.rank).setup;
    if (!box.taken.counter.reached(posted_[peer])) box.revoked.counter.publish_value(posted_[peer]);
  }
}

Status Exchange::await(const Counter& counter, uint64_t target, int peer, const char* what,
                       Deadline deadline) {
  Idle idle(core_.yields);
  for (int i = 0; i < core_.spins; ++i) {
    if (counter.reached(target)) return {};
    pause();
  }
  while (!counter.reached(target)) {
    if (idle.next() == Idle::Action::kYield) {
      yield();
      continue;
    }
    Doorbell* const own[] = {core_.doorbells[core_.rank]};
    Idle::sleep(own, [&] { return counter.value() >= target; });
    // Who ended may have done its part before: the counter is looked at after its end was seen.
    const bool dead = core_.health->peer_dead(peer);
    const bool left = core_.view.rank(peer).left.raised();
    if (counter.reached(target)) return {};
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
                           "{}: {}: rank {} has not joined in within the deadline; every rank must "
                           "make this call",
                           core_.health->who(), what, peer);
    }
  }
  return {};
}

}  // namespace tessera
