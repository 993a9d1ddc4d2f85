// What the parts of a communicator share: its members, its segment, its health. One object per rank
// and communicator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/nap.h"
#include "comm/driven.h"
#include "comm/fd_mailbox.h"
#include "comm/health.h"
#include "comm/ports.h"
#include "comm/segment_layout.h"
#include "exec/host_space.h"
#include "transports/emulated/links.h"
#include "transports/net_plugin/library.h"
#include "transports/peer.h"
#include "transports/shm/segment.h"
#include "tuner/seats.h"
#include "tuner/tuner.h"

namespace tessera {

// Memory of an arena that is set aside for each (peer, direction) of send/recv.
inline constexpr size_t kPairRegionBytes = 256 * 1024;
inline constexpr size_t kPlanArenaBytes = size_t{128} << 20;

constexpr size_t arena_bytes(int ranks) {
  return kPlanArenaBytes + kPairRegionBytes * 2 * static_cast<size_t>(ranks);
}

// What choices are made by, read once: ranks compared it when they met, and the children of a
// communicator inherit it. Each pointer may be null.
struct Tuning {
  std::shared_ptr<const Profile> profile;
  std::shared_ptr<const TunerLibrary> plugin;
  std::shared_ptr<const net_plugin::Library> net;  // null: the library's own networks
  Seat seat = {};                                  // of this rank
  bool one_ring = false;                           // see seat_ranks()
  std::string emulation = {};                      // digest of what TESSERA_EMULATE describes
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
  std::vector<MemberWay> ways;                      // by rank
  std::vector<Fd> pokes;                            // what ways[].poke name
  std::shared_ptr<const emulated::Links> emulated;  // null: links are what they are
  std::vector<Doorbell*> doorbells;                 // by rank, for what emulates them
  std::unique_ptr<Ports> ports;                     // null: every rank is reached by load and store
  mutable DrivenList driven;
  mutable Alarm alarm;       // of the thread that waits for the ports
  bool one_process = false;  // all ranks in this process
  // every pair may read and write each other's memory through the kernel
  bool single_copy = false;
  NodeLink network = {Network{}.latency, Network{}.bandwidth};  // as far as this rank knows
  Site site;
  Tuning tuning;
  std::unique_ptr<Tuner> tuner;       // of collectives
  std::unique_ptr<Tuner> pair_tuner;  // of a send and its receive on one host
  std::unique_ptr<Tuner> far_tuner;   // of the same between hosts; null: there is one only
  // Looks at an unmet wait before other work or a yield; more if nobody who is waited for needs
  // this rank's processor to go on; yields before a sleep.
  int spins = 0, patience = 0, yields = 0;
  int looks = 0;       // fruitless ones at the ports before a yield
  int processor = -1;  // of mark_processor()
  // set-up messages exchanged with each peer while forming (as many each way)
  std::vector<uint64_t> set_up;

  RankArea& area() const { return view.rank(rank); }
  // How user buffers of all ranks, or of a peer, can be reached, `mapped` telling whether they are
  // mapped.
  Access access(bool mapped) const {
    if (ports) return ports->any_elsewhere() && single_copy ? Access::kPut : Access::kNone;
    if (mapped) return Access::kMapped;
    return single_copy ? Access::kSingleCopy : Access::kNone;
  }
  Access access_to(int peer, bool mapped) const {
    if (ways[peer].port != nullptr) return elsewhere(peer) ? Access::kPut : Access::kNone;
    if (mapped) return Access::kMapped;
    return single_copy ? Access::kSingleCopy : Access::kNone;
  }
  void ring(int peer) const {
    if (ways[peer].doorbell->ring()) poke(ways[peer].poke);
  }
  void ring_all() const {
    for (int peer = 0; peer < ranks; ++peer) ring(peer);
  }
  Tuner& tuner_of_pair(int peer) const { return elsewhere(peer) ? *far_tuner : *pair_tuner; }
  bool elsewhere(int peer) const { return ports && ports->elsewhere(peer); }
  // The ranks of this host, the own included.
  std::vector<int> neighbours() const {
    std::vector<int> here;
    for (int peer = 0; peer < ranks; ++peer) {
      if (!elsewhere(peer)) here.push_back(peer);
    }
    return here;
  }
  // What this rank stored for peers to see becomes known on other hosts, too (see Ports).
  void share(const void* from, size_t bytes) const {
    if (ports) ports->share(from, bytes);
  }
  void share(int peer, const void* from, size_t bytes) const {
    if (ports) ports->share(peer, from, bytes);
  }
  void share_value(int peer, const Counter& counter) const {
    if (ports) ports->share_value(peer, counter);
  }
  // Takes in what came and sends what is posted.
  bool progress() const { return ports && ports->progress(); }
  // Keeps other threads from the ports, if there are any.
  std::unique_lock<Ports> enter() const {
    return ports ? std::unique_lock(*ports) : std::unique_lock<Ports>();
  }
  // The same without waiting for them; false: somebody is there.
  bool try_enter(std::unique_lock<Ports>& lock) const {
    if (ports) lock = std::unique_lock(*ports, std::try_to_lock);
    return !ports || lock.owns_lock();
  }
  // Tells peers, and is_neighbour(), where this rank runs.
  void mark_processor() {
    processor = current_processor();
    area().processor.set(processor);
  }
  // The rank last ran on this one's processor.
  bool is_neighbour(int peer) const { return view.rank(peer).processor.is(processor); }
  bool same_process(int peer) const {
    return !elsewhere(peer) && peers[peer].process == peers[rank].process;
  }
};

}  // namespace tessera
