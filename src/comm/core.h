// What the parts of a communicator share: its members, its segment, its health. One object per rank
// and communicator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "comm/fd_mailbox.h"
#include "comm/health.h"
#include "comm/segment_layout.h"
#include "transports/peer.h"
#include "transports/shm/segment.h"
#include "tuner/tuner.h"

namespace tessera {

// Memory of an arena that is set aside for each (peer, direction) of send/recv.
inline constexpr size_t kPairRegionBytes = 256 * 1024;
inline constexpr size_t kPlanArenaBytes = size_t{128} << 20;

constexpr size_t arena_bytes(int ranks) {
  return kPlanArenaBytes + kPairRegionBytes * 2 * static_cast<size_t>(ranks);
}

// What choices are made by, read once: ranks compared it when they met, and the children of a
// communicator inherit it. Either may be null.
struct Tuning {
  std::shared_ptr<const Profile> profile;
  std::shared_ptr<const TunerLibrary> plugin;
};

struct Core {
  Config config;
  int rank = 0;
  int ranks = 1;
  uint64_t id = 0;                        // of the communicator: equal on its ranks, else random
  std::vector<Member> members;            // by rank, as bootstrap agreed
  std::vector<Peer> peers;                // the same for the transports
  std::vector<std::string> socket_names;  // of the ranks' mailboxes
  std::shared_ptr<shm::Segment> segment;
  SegmentView view;
  std::unique_ptr<Health> health;
  std::unique_ptr<FdMailbox> mailbox;
  std::vector<Doorbell*> doorbells;  // by rank
  bool one_process = false;          // all ranks in this process
  // every pair may read and write each other's memory through the kernel
  bool single_copy = false;
  Site site;
  Tuning tuning;
  std::unique_ptr<Tuner> tuner;       // of collectives
  std::unique_ptr<Tuner> pair_tuner;  // of a send and its receive
  // Looks at an unmet wait before other work or a yield; more if nobody who is waited for needs
  // this rank's processor to go on; yields before a sleep.
  int spins = 0, patience = 0, yields = 0;
  int processor = -1;  // of mark_processor()
  // set-up messages exchanged with each peer while forming (as many each way)
  std::vector<uint64_t> set_up;

  RankArea& area() const { return view.rank(rank); }
  // How user buffers can be reached, `mapped` telling whether peers can map them.
  Access access(bool mapped) const {
    if (mapped) return Access::kMapped;
    return single_copy ? Access::kSingleCopy : Access::kNone;
  }
  // Tells peers, and is_neighbour(), where this rank runs.
  void mark_processor() {
    processor = current_processor();
    area().processor.set(processor);
  }
  // The rank last ran on this one's processor.
  bool is_neighbour(int peer) const { return view.rank(peer).processor.is(processor); }
  bool same_process(int peer) const { return peers[peer].process == peers[rank].process; }
};

}  // namespace tessera
