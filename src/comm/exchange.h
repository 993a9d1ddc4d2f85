// Set-up messages between the ranks of a communicator through its segment: what bootstrap is for
// the first communicator, this is for splitting, shrinking, windows and finalizing. Blocking, with
// deadline; works among any subset of ranks that all take part, also when other ranks are dead and
// the communicator is in an error state.
//
// Ranks may be in different calls: one has failed and its rank goes on to the next, while a peer is
// still in it; or they disagree. A message of another call is never taken:
//   - one that its sender has revoked (the call failed there) is passed over;
//   - a shrink goes before other calls, and one among fewer ranks before one among more, since that
//     is the order in which failures are dealt with. Who is in the earlier call fails at once, so
//     that it can follow; who is in the later one waits until the earlier is revoked;
//   - else the ranks disagree: both fail at once. Their messages stay until their next calls, so
//     that each sees the other's.
// Thread safety: one thread at a time per object.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "comm/core.h"

namespace tessera {

class SetupExchange {
 public:
  explicit SetupExchange(Core& core) : core_(core), posted_(core.set_up), taken_(core.set_up) {
    posted_.resize(core.ranks);
    taken_.resize(core.ranks);
  }

  // Messages exchanged with each peer so far (as many each way once all_gather is over): where a
  // later SetupExchange goes on.
  const std::vector<uint64_t>& counts() const { return posted_; }

  // Gives `mine` to every member and returns what each gave, by position in `members` (sorted
  // ranks, the own included). kRemote if a member dies, kTimeout naming a member that did not
  // come, kInvalidUsage naming one that is in another call.
  template <class T>
  Result<std::vector<T>> all_gather(std::span<const int> members, const T& mine, SetupCall call,
                                    Deadline deadline) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(SetupBox::payload));
    std::vector<T> all(members.size());
    const Status status = gather(members, &mine, all.data(), sizeof(T), call, deadline);
    if (!status.ok()) return status;
    return all;
  }

  // For who waits for `members` in another way during a call: those who will not come, as their
  // process has ended, their connection is lost or they have destroyed this communicator.
  std::vector<int> gone_among(std::span<const int> members) const;
  // What the call ends with that waits for them: kRemote, naming them and how they went.
  Status without(std::span<const int> gone, SetupCall call);

 private:
  Status gather(std::span<const int> members, const void* mine, void* all, size_t bytes,
                SetupCall call, Deadline deadline);
  Status post(int peer, const SetupOccasion& occasion, const void* mine, size_t bytes,
              Deadline deadline);
  Status take(int peer, const SetupOccasion& occasion, void* to, size_t bytes, Deadline deadline);
  Status exchange(std::span<const int> members, const SetupOccasion& occasion, const void* mine,
                  void* all, size_t bytes, Deadline deadline);
  void revoke();
  void pass_over_revoked(int peer);
  void acknowledge(int peer);
  // Of the members still to come, those whose process has ended or whose connection is lost.
  std::vector<int> dead_to_come() const;
  Status dead(std::span<const int> ranks, SetupCall call);
  Status gone(std::string why, SetupCall call) const;
  Status await(const Counter& counter, uint64_t target, int peer, SetupCall call,
               Deadline deadline);

  Core& core_;
  std::vector<uint64_t> posted_;  // to each peer
  std::vector<uint64_t> taken_;   // from each peer
  std::span<const int> to_come_;  // of the present call's members, whose message is not taken yet
  bool to_revoke_ = false;        // messages of the last call, which failed
};

}  // namespace tessera
