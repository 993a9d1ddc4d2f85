// The ranks that one rank reaches through ports, and what it knows of them.
//
// A host's segment holds what the ranks of that host write. What ranks of other hosts say, and room
// that stands for their arenas, lies once more in a mirror: private memory of this rank in the layout
// of the segment. What this rank tells a peer elsewhere it stores in the mirror, or in its own area, as
// it does for any peer, and then shares it: the bytes travel and land at the same position of the
// peer's mirror. A put into the arena of a rank elsewhere is made in the mirror, which keeps what
// could not leave at once, and lands in the peer's own arena.
//
//        rank 0 on host A                                   rank 2 on host B
//   segment   areas 0 1, arenas 0 1    --- arena 2 --->   segment   areas 2 3, arenas 2 3
//   mirror    areas 2 3, arenas 2 3    --- area 0 ---->   mirror    areas 0 1, arenas 0 1
//
// Ranks of the own host behind an emulated link share the segment; only signals of plans pass through
// their ports.
//
// Thread safety: one thread at a time: whoever holds it (a lock; see Core::enter). Nobody sleeps or
// yields holding it, but in flush() and retract(), which end within a fraction of a second. Who lets
// go tells the ranks elsewhere of an error that came meanwhile. lost() and
// spread_error_if_idle() from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/segment_layout.h"
#include "device/port.h"
#include "sync/flag.h"

namespace tessera {

class Ports final : public Landing {
 public:
  // `elsewhere`: by rank, true for ranks of other hosts. Maps the mirror if there are any.
  static Result<std::unique_ptr<Ports>> create(int rank, std::vector<bool> elsewhere,
                                               size_t arena_bytes);
  ~Ports() override;

  // Once the segment and the connections are there.
  void set_segment(std::byte* base) { segment_ = base; }
  void set_engine(std::unique_ptr<PortEngine> engine) { engine_ = std::move(engine); }

  std::byte* mirror() const { return mirror_; }
  bool elsewhere(int rank) const { return elsewhere_[static_cast<size_t>(rank)]; }
  bool any_elsewhere() const { return mirror_ != nullptr; }
  // Null: the rank is reached by load and store.
  Port* port(int rank) const { return engine_->port(rank); }
  // Where position 0 of what the port to `rank` writes stands in this process.
  std::byte* base(int rank) const { return elsewhere(rank) ? mirror_ : segment_; }

  // Makes what this rank stored at `from` known to ranks elsewhere: to all, or to one (nothing
  // happens if that rank is on this host). `from` lies in the segment or in the mirror.
  void share(const void* from, size_t bytes);
  void share(int peer, const void* from, size_t bytes);
  // The same for a counter that was raised, after all that was shared before.
  void share_value(const Counter& counter);
  void share_value(int peer, const Counter& counter);
  // Tells ranks elsewhere the communicator's error, once.
  void spread_error();

  // Where peers put what is for the present call: the output of a collective, or what `peer` sends.
  // Until retract().
  void expect(void* output, size_t bytes) { collective_ = {output, bytes}; }
  void expect(int peer, void* output, size_t bytes) {
    pairs_[static_cast<size_t>(peer)] = {output, bytes};
  }
  // After a call that ended well nothing more can come: of a collective, of a receive from `peer`, of
  // a send.
  void forget() {
    collective_ = {};
    engine_->end_call();
  }
  void forget(int peer) {
    pairs_[static_cast<size_t>(peer)] = {};
    engine_->end_call();
  }
  void forget_send() { engine_->end_call(); }
  // After one that did not: user memory is given back.
  void retract();

  bool progress() { return engine_->progress(); }
  bool flushed() const { return engine_->flushed(); }
  // Until all has left, or the time is over.
  void flush(std::chrono::milliseconds at_most);
  int wait_fd() const { return engine_->wait_fd(); }
  std::chrono::nanoseconds due_in() const { return engine_->due_in(); }

  // A lock, as std::unique_lock takes it.
  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock();
  // Tells the ranks elsewhere of an error, unless a thread is inside, which does it when it leaves.
  void spread_error_if_idle();

  // Why nothing comes from that rank any more; null while its connection is there.
  const std::string* lost(int rank) const {
    const Loss& loss = losses_[static_cast<size_t>(rank)];
    return loss.happened.raised() ? &loss.why : nullptr;
  }

  // Landing
  std::byte* locate(int peer, uint64_t position, size_t bytes) override;
  bool is_over(int peer, uint64_t position) const override;
  bool signalled(int peer, const PortSignal& signal) override;
  void closed(int peer, const Status& why) override;

 private:
  struct Loss {
    Flag happened;
    std::string why;  // written before
  };
  struct UserMemory {
    void* base = nullptr;
    size_t bytes = 0;
  };
  Ports(int rank, std::vector<bool> elsewhere, size_t arena_bytes);
  uint64_t position(const void* at) const;
  std::byte* memory(uint64_t position) const { return mirror_ + position; }
  SegmentView view() const;
  bool may_write(int peer, uint64_t position, size_t bytes) const;
  void adopt_error();

  int rank_, ranks_;
  std::vector<bool> elsewhere_;
  size_t arena_bytes_, bytes_;
  std::byte* mirror_ = nullptr;
  std::byte* segment_ = nullptr;
  std::unique_ptr<PortEngine> engine_;
  std::vector<Loss> losses_;
  UserMemory collective_;
  std::vector<UserMemory> pairs_;  // by peer
  std::mutex mutex_;
  ErrorRecord told_{}, heard_{};
  bool spread_ = false;
};

}  // namespace tessera
