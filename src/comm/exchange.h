// Set-up messages between the ranks of a communicator through its segment: what bootstrap is for
// the first communicator, this is for splitting, shrinking, windows and finalizing. Blocking, with
// deadline; works among any subset of ranks that all take part, also when other ranks are dead and
// the communicator is in an error state.
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
  // ranks, the own included). `what` names the occasion in messages. kRemote if a member dies,
  // kTimeout naming the members that did not come.
  template <class T>
  Result<std::vector<T>> all_gather(std::span<const int> members, const T& mine, const char* what,
                                    Deadline deadline) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(SetupBox::payload));
    std::vector<T> all(members.size());
    const Status status = gather(members, &mine, all.data(), sizeof(T), what, deadline);
    if (!status.ok()) {
      revoke(members);
      return status;
    }
    return all;
  }

 private:
  Status gather(std::span<const int> members, const void* mine, void* all, size_t bytes,
                const char* what, Deadline deadline);
  Status gather_inside(std::span<const int> members, const void* mine, void* all, size_t bytes,
                       const char* what, Deadline deadline);
  void revoke(std::span<const int> members);
  Status await(const Counter& counter, uint64_t target, int peer, const char* what,
               Deadline deadline);

  Core& core_;
  std::vector<uint64_t> posted_;  // to each peer
  std::vector<uint64_t> taken_;   // from each peer
};

}  // namespace tessera
