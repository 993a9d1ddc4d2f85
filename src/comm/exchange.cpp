#include "comm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/hash.h"
#include "comm/liveness.h"
#include "comm/sleep.h"

namespace tessera {
namespace {

constexpr std::chrono::milliseconds kLongestFlush{200};

const char* to_text(SetupCall call) {
  switch (call) {
    case SetupCall::kInit:
      return "init";
    case SetupCall::kSplit:
      return "split";
    case SetupCall::kForm:
      return "split (forming the new communicator)";
    case SetupCall::kShrink:
      return "shrink";
    case SetupCall::kFinalize:
      return "finalize";
    case SetupCall::kWindow:
      return "window registration";
    case SetupCall::kFused:
      return "creating a fused operator";
    case SetupCall::kFusedRoom:
      return "making room for a fused operator";
    case SetupCall::kFusedRoomMade:
      return "making room for a fused operator (cleared)";
  }
  return "a call that this rank does not know";
}

SetupOccasion occasion_of(std::span<const int> members, SetupCall call) {
  return {call, static_cast<uint32_t>(members.size()),
          Hash().bytes(members.data(), members.size_bytes()).value()};
}

std::string left_text(int rank) {
  return fmt::format("rank {} has destroyed its communicator", rank);
}

bool goes_before(const SetupOccasion& one, const SetupOccasion& other) {
  const bool shrinks = one.call == SetupCall::kShrink;
  if (shrinks != (other.call == SetupCall::kShrink)) return shrinks;
  return shrinks && one.members < other.members;
}

}  // namespace

Status SetupExchange::gather(std::span<const int> members, const void* mine, void* all,
                             size_t bytes, SetupCall call, Deadline deadline) {
  const auto inside = core_.enter();
  if (to_revoke_) revoke();
  Status status = exchange(members, occasion_of(members, call), mine, all, bytes, deadline);
  if (status.ok()) {
    // Over several rails all must be acknowledged, which nobody does who is done here and busy
    // elsewhere: later progress() sees to the rest.
    if (core_.ports) core_.ports->flush(kLongestFlush);
  } else if (!to_revoke_) {
    revoke();
  }
  return status;
}

Status SetupExchange::exchange(std::span<const int> members, const SetupOccasion& occasion,
                               const void* mine, void* all, size_t bytes, Deadline deadline) {
  to_come_ = members;
  for (const int peer : members) {
    if (peer == core_.rank) continue;
    if (Status s = post(peer, occasion, mine, bytes, deadline); !s.ok()) return s;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    to_come_ = members.subspan(i);
    auto* to = static_cast<std::byte*>(all) + i * bytes;
    if (members[i] == core_.rank) {
      std::memcpy(to, mine, bytes);
    } else if (Status s = take(members[i], occasion, to, bytes, deadline); !s.ok()) {
      return s;
    }
  }
  return {};
}

Status SetupExchange::post(int peer, const SetupOccasion& occasion, const void* mine, size_t bytes,
                           Deadline deadline) {
  SetupBox& box = core_.view.pair(peer, core_.rank).setup;
  // The box is free once the peer took all earlier messages.
  if (Status s = await(box.taken.counter, posted_[peer], peer, occasion.call, deadline); !s.ok())
    return s;
  box.occasion = occasion;
  std::memcpy(box.payload.data(), mine, bytes);
  box.posted.counter.publish(1);
  ++posted_[peer];
  core_.share(peer, &box.occasion, sizeof box.occasion);
  core_.share(peer, box.payload.data(), bytes);
  core_.share_value(peer, box.posted.counter);
  core_.ring(peer);
  return {};
}

Status SetupExchange::take(int peer, const SetupOccasion& occasion, void* to, size_t bytes,
                           Deadline deadline) {
  SetupBox& box = core_.view.pair(core_.rank, peer).setup;
  for (;;) {
    pass_over_revoked(peer);
    const uint64_t number = taken_[peer] + 1;
    if (Status s = await(box.posted.counter, number, peer, occasion.call, deadline); !s.ok())
      return s;
    if (box.revoked.counter.reached(number)) continue;
    if (box.occasion == occasion) break;
    if (!goes_before(occasion, box.occasion)) {
      to_revoke_ = !goes_before(box.occasion, occasion);
      return Status::error(
          Code::kInvalidUsage,
          "{}: {} of {} ranks: rank {} is in another call, {} of {} ranks; all of them must make "
          "the same calls in the same order",
          core_.health->who(), to_text(occasion.call), occasion.members, peer,
          to_text(box.occasion.call), box.occasion.members);
    }
    if (Status s = await(box.revoked.counter, number, peer, occasion.call, deadline); !s.ok())
      return s;
  }
  std::memcpy(to, box.payload.data(), bytes);
  acknowledge(peer);
  return {};
}

void SetupExchange::acknowledge(int peer) {
  SetupBox& box = core_.view.pair(core_.rank, peer).setup;
  box.taken.counter.publish(1);
  ++taken_[peer];
  core_.share_value(peer, box.taken.counter);
  core_.ring(peer);
}

// Messages that were not taken would be taken for those of a later try.
void SetupExchange::revoke() {
  to_revoke_ = false;
  for (int peer = 0; peer < core_.ranks; ++peer) {
    if (peer == core_.rank) continue;
    SetupBox& box = core_.view.pair(peer, core_.rank).setup;
    if (box.taken.counter.reached(posted_[peer])) continue;
    box.revoked.counter.publish_value(posted_[peer]);
    core_.share_value(peer, box.revoked.counter);
    core_.ring(peer);
  }
}

// Else two ranks that both have revoked a message would wait for each other's box for ever.
void SetupExchange::pass_over_revoked(int peer) {
  const SetupBox& box = core_.view.pair(core_.rank, peer).setup;
  if (box.revoked.counter.reached(taken_[peer] + 1)) acknowledge(peer);
}

// Who ended may have done its part before: what it posted is looked at after its end was seen.
std::vector<int> SetupExchange::dead_to_come() const {
  std::vector<int> dead = core_.health->dead_among(to_come_);
  std::erase_if(dead, [&](int member) {
    const SetupBox& box = core_.view.pair(core_.rank, member).setup;
    return box.posted.counter.reached(taken_[member] + 1);
  });
  return dead;
}

std::vector<int> SetupExchange::gone_among(std::span<const int> members) const {
  std::vector<int> gone = core_.health->dead_among(members);
  if (!gone.empty()) return gone;
  std::copy_if(members.begin(), members.end(), std::back_inserter(gone),
               [&](int member) { return core_.view.rank(member).left.raised(); });
  return gone;
}

Status SetupExchange::without(std::span<const int> ranks, SetupCall call) {
  if (core_.health->peer_dead(ranks.front())) return dead(ranks, call);
  return gone(left_text(ranks.front()), call);
}

Status SetupExchange::dead(std::span<const int> ranks, SetupCall call) {
  const std::string* lost = core_.health->connection_lost(ranks.front());
  const Status status = gone(lost != nullptr ? *lost : ended_text(ranks), call);
  static_cast<void>(core_.health->raise(status));  // the text of this call says more
  return status;
}

// A peer may have left because of another's death, which this rank has not seen yet.
Status SetupExchange::gone(std::string why, SetupCall call) const {
  const Health& health = *core_.health;
  const Status before = health.status();
  if (!before.ok()) why += "; before that: " + before.message();
  return Status::error(Code::kRemote, "{}: {}: {}", health.who(), to_text(call), why);
}

Status SetupExchange::await(const Counter& counter, uint64_t target, int peer, SetupCall call,
                            Deadline deadline) {
  const Core* const own[] = {&core_};
  Idle idle(core_.yields);
  std::optional<Deadline> next_look;  // reads clocks: from the first sleep on
  core_.progress();
  for (int i = 0; i < core_.spins; ++i) {
    if (counter.reached(target)) return {};
    pause();
  }
  while (!counter.reached(target)) {
    for (int other = 0; other < core_.ranks; ++other) {
      if (other != core_.rank) pass_over_revoked(other);
    }
    if (idle.next() == Idle::Action::kYield) {
      yield_outside(own);
      if (core_.progress()) idle.reset();
      continue;
    }
    sleep_until_rung(own, [&] { return core_.progress() || counter.value() >= target; });
    core_.progress();
    if (!next_look) next_look = Deadline::after(kBetweenLooks);
    const bool ended = core_.health->peer_dead(peer);
    const bool left = core_.view.rank(peer).left.raised();
    if (counter.reached(target)) return {};
    if (core_.health->aborted() || (call == SetupCall::kInit && !core_.health->good()))
      return core_.health->status();
    if (ended || left || next_look->passed()) {
      next_look = Deadline::after(kBetweenLooks);
      if (const std::vector<int> ranks = dead_to_come(); !ranks.empty()) return dead(ranks, call);
      if (ended) return dead({&peer, 1}, call);
      if (left) return gone(left_text(peer), call);
    }
    if (deadline.passed()) {
      return core_.health->explain(Status::error(
          Code::kTimeout,
          "{}: {}: rank {} has not joined in within the deadline (TESSERA_TIMEOUT_MS); every rank "
          "must make this call",
          core_.health->who(), to_text(call), peer));
    }
  }
  return {};
}

}  // namespace tessera
