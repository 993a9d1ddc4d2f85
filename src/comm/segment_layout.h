// What lies where in a communicator's shared segment. Zeroed memory is the valid initial state of
// everything here.
//
//   | SegmentHeader | RankArea of rank 0, 1, ... | PairArea of (0,0), (0,1), ... | arena of rank 0
//   | arena of rank 1 | ...
//
// Pair areas are indexed by (owner, peer): what `peer` writes for `owner` to read. Arenas hold the
// regions of linked plans. Only pages that are touched cost memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "sync/counter.h"
#include "sync/flag.h"
#include "sync/log_ring.h"
#include "sync/once_record.h"
#include "sync/processor_mark.h"
#include "transports/peer.h"

namespace tessera {

// A call as peers see it: enough to compare and to explain.
struct CallRecord {
  uint64_t fingerprint = 0;
  uint64_t count = 0;
  uint64_t number = 0;  // of this communicator's collectives, or of the pair's sends; from 1
  int16_t root = -1;
  uint16_t way = 0;        // what a tuner plugin had it run as, see way_of(); 0: none, or not yet
  uint8_t collective = 0;  // Collective
  uint8_t type = 0;        // DataType
  uint8_t op = 0;          // ReduceOp
  uint8_t kind = 0;        // CallKind
};
static_assert(sizeof(CallRecord) == 32);

// The latest calls of a rank, or of a rank in one direction of a pair.
inline constexpr uint64_t kLoggedCalls = 8;
using CallLog = LogRing<CallRecord, kLoggedCalls>;

enum class CallKind : uint8_t { kCollective, kSend, kReceive };

// What a rank tells its peers before a bulk call.
struct Announcement {
  CallRecord call;
  BufferNote input;
  BufferNote output;
  uint64_t scalar = 0;  // this rank's PreMulSum factor
  uint64_t freed = 0;   // an allocation whose mapping peers shall drop; 0: none
  // 1: all buffers of this call lie in shareable allocations (or there are none)
  uint32_t shareable = 0;
  uint32_t reserved = 0;
};

// Announcements of one rank to all peers, or to one. Two entries suffice: announcement k + 1 says
// that its writer finished call k, and it writes k + 2 only after all readers announced k + 1,
// having read k.
struct AnnouncementBoard {
  PaddedCounter announced;  // number of announcements made
  std::array<Announcement, 2> entries;
};

struct ErrorRecord {
  Code code;
  int32_t rank;  // who found it
  char text[480];

  Status status() const { return {code, std::string(text, strnlen(text, sizeof text))}; }
};

struct SegmentHeader {
  alignas(kCacheLine) OnceRecord<ErrorRecord> error;
};

struct alignas(kCacheLine) RankArea {
  Doorbell doorbell;
  CallLog calls;
  AnnouncementBoard board;
  // Runs of direct plans: while more have begun than ended, this rank may be inside peers' buffers.
  PaddedCounter direct_begun, direct_ended;
  PaddedCounter pulse;            // grows now and then while the rank waits for others
  alignas(kCacheLine) Flag left;  // destroyed its communicator
  Flag finalizing;
  alignas(kCacheLine) ProcessorMark processor;
};

// Set-up calls (exchange.h).
enum class SetupCall : uint32_t {
  kInit,
  kSplit,
  kForm,
  kShrink,
  kFinalize,
  kWindow,
  kFused,
  kFusedRoom,
  kFusedRoomMade
};

// Which call a set-up message belongs to.
struct SetupOccasion {
  SetupCall call;
  uint32_t members;  // how many
  uint64_t which;    // hash of the members' ranks

  bool operator==(const SetupOccasion&) const = default;
};

// Set-up messages (exchange.h) from one rank to another: one in flight.
struct alignas(kCacheLine) SetupBox {
  PaddedCounter posted;   // by the sender
  PaddedCounter taken;    // by the receiver
  PaddedCounter revoked;  // by the sender: number of its last message that no longer counts
  SetupOccasion occasion;
  std::array<std::byte, 432> payload;
};

struct alignas(kCacheLine) PairArea {
  SetupBox setup;
  CallLog sends;                    // written by peer: its sends to owner
  CallLog receives;                 // written by peer: its receives from owner
  AnnouncementBoard send_board;     // written by peer, for its sends to owner
  AnnouncementBoard receive_board;  // written by peer, for its receives from owner
};

// Address arithmetic over a mapped segment; over its mirror for what concerns ranks of other hosts
// (comm/ports.h).
class SegmentView {
 public:
  SegmentView() = default;
  SegmentView(std::byte* base, int ranks, size_t arena_bytes)
      : base_(base), ranks_(static_cast<size_t>(ranks)), arena_bytes_(arena_bytes) {}
  // `bases`: by rank, `base` or the mirror.
  SegmentView(std::byte* base, std::vector<std::byte*> bases, size_t arena_bytes)
      : base_(base), ranks_(bases.size()), arena_bytes_(arena_bytes), bases_(std::move(bases)) {}

  static size_t bytes(int ranks, size_t arena_bytes) {
    const SegmentView view(nullptr, ranks, arena_bytes);
    return view.arena_offset(ranks);
  }

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  RankArea& rank(int rank) const {
    return *reinterpret_cast<RankArea*>(base_of(rank) + ranks_offset() + sizeof(RankArea) * rank);
  }
  PairArea& pair(int owner, int peer) const {
    std::byte* base = base_of(owner) != base_ ? base_of(owner) : base_of(peer);
    return *reinterpret_cast<PairArea*>(base + pairs_offset() +
                                        sizeof(PairArea) * (owner * ranks_ + peer));
  }
  size_t arena_offset(int rank) const {
    return round_page(pairs_offset() + sizeof(PairArea) * ranks_ * ranks_) + arena_bytes_ * rank;
  }
  std::byte* arena(int rank) const { return base_of(rank) + arena_offset(rank); }
  size_t arena_bytes() const { return arena_bytes_; }

 private:
  static constexpr size_t round_page(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
  static constexpr size_t ranks_offset() { return round_page(sizeof(SegmentHeader)); }
  std::byte* base_of(int rank) const {
    return bases_.empty() ? base_ : bases_[static_cast<size_t>(rank)];
  }
  size_t pairs_offset() const { return round_page(ranks_offset() + sizeof(RankArea) * ranks_); }

  std::byte* base_ = nullptr;
  size_t ranks_ = 0;
  size_t arena_bytes_ = 0;
  std::vector<std::byte*> bases_;
};

}  // namespace tessera
