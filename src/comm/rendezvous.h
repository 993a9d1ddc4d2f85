// The beginning of a bulk call: every party announces its call and buffers, compares those of the
// others with its own (I7), and exchanges descriptors of shareable memory that a peer has not
// mapped yet.
// Thread safety: one thread at a time. advance() never blocks.
#pragma once

#include <span>
#include <vector>

#include "comm/sharing.h"

namespace tessera {

// Another party of the call and where it announces.
struct Party {
  int rank;
  const AnnouncementBoard* board;
};

class Rendezvous {
 public:
  Rendezvous(Core& core, Sharing& sharing) : core_(core), sharing_(sharing) {}

  // `number` of this announcement on `own` board, from 1; the parties' boards count alike.
  // `peer` for a pair (its rank), -1 for all ranks. `parties` must live until the rendezvous is
  // over.
  void start(AnnouncementBoard& own, uint64_t number, std::span<const Party> parties, int peer,
             const CallRecord& call, const BufferNote& input, const BufferNote& output,
             uint64_t scalar);

  // True when all parties have announced the same call and shared their memory; false: call again.
  // False for ever once disagrees().
  Result<bool> advance(int spins);
  // A party announced another call, or made other calls before.
  bool disagrees() const { return disagrees_; }

  // After completion. True if all parties' buffers can be mapped by all.
  bool all_shareable() const { return all_shareable_; }
  const Announcement& announcement(size_t party) const { return theirs_[party]; }
  const Announcement& mine() const { return mine_; }
  uint64_t moved() const { return seen_ + exchanged_; }
  // A party that has not announced yet; -1 when all have.
  int missing() const { return seen_ < parties_.size() ? parties_[seen_].rank : -1; }

 private:
  Result<bool> share();

  Core& core_;
  Sharing& sharing_;
  std::span<const Party> parties_;
  Announcement mine_;
  std::vector<Announcement> theirs_;
  uint64_t number_ = 0;
  size_t seen_ = 0;       // parties whose announcement was read
  size_t exchanged_ = 0;  // of 4 per party: give input, give output, take input, take output
  bool all_shareable_ = false;
  bool disagrees_ = false;
};

}  // namespace tessera
