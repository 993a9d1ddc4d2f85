// Port channels: how a rank reaches memory of a rank that it cannot, or shall not, write by load and
// store: of another host (transports/tcp), or behind an emulated link (transports/emulated).
//
// A port carries two kinds of messages to one peer, in order: puts (bytes) and signals (a counter
// moves). Memory is named by its position in the communicator's segment layout, which is the same at
// both ends: `position` 0 is the segment's first byte. Positions from kUserMemory on name buffers of
// the peer's present call instead. The receiving end asks its Landing where a position lies.
//
//   sender's thread                     receiver's thread
//   put(position, data) ---------.
//   signal(counter, value) -----. '---> landing.locate(position): bytes are stored there
//                                '----> landing.signalled(): after all earlier bytes are stored
//
// Nothing moves by itself: the thread that runs a rank calls progress() of its engine, both to send
// what is posted and to take in what came. There is no thread behind it.
//
// Thread safety: an engine and its ports are used by one thread at a time.
// Ordering: a signal takes effect at the peer after all puts and signals posted before it on the same
// port are in the peer's memory; different ports are not ordered.
// Source: DESIGN's port channel; RDMA write with immediate has the same shape.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace tessera {

inline constexpr uint64_t kUserMemory = uint64_t{1} << 62;
inline constexpr uint64_t kPairMemory = kUserMemory | uint64_t{1} << 61;  // of a send's receive

struct PortSignal {
  enum class Kind : uint8_t {
    kSet,   // the counter becomes `value`; its only adder is this port
    kAdd,   // the counter grows by `value`
    kSlot,  // the counter heads a slot: `fingerprint` is stored beside it, then it becomes `value`
  };
  uint64_t position = 0;  // of the counter
  uint64_t value = 0;
  uint64_t fingerprint = 0;
  Kind kind = Kind::kSet;
};

// What the receiving rank does with what comes. Called from progress().
class Landing {
 public:
  virtual ~Landing() = default;
  // Where bytes [position, position + bytes) from `peer` are to be stored; null: the peer may not
  // write there, and its connection ends.
  virtual std::byte* locate(int peer, uint64_t position, size_t bytes) = 0;
  // Whether bytes from `peer` for that position, which locate() refuses, are of a call that has ended
  // here with an error: they are taken in and dropped.
  virtual bool is_over(int /*peer*/, uint64_t /*position*/) const { return false; }
  // All bytes posted before are stored. False: refused, as above.
  virtual bool signalled(int peer, const PortSignal& signal) = 0;
  // The connection to `peer` has ended and nothing more comes; called once. What came before it has
  // been handed over.
  virtual void closed(int peer, const Status& why) = 0;
};

class Port {
 public:
  virtual ~Port() = default;
  // Sends bytes to the peer's memory. What cannot leave at once is kept in `shadow`, memory of the
  // caller with room for `bytes` that only later puts to the same position, or none, may change;
  // `data` may be changed as soon as put() returns. `data` may be `shadow`; it then leaves from where
  // it lies, without a copy if the kernel can, and is the port's until flushed() or until the peer
  // has told that it has it.
  virtual void put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) = 0;
  virtual void signal(const PortSignal& signal) = 0;
};

// All ports of a rank over one transport.
class PortEngine {
 public:
  virtual ~PortEngine() = default;
  // Null for the own rank and for ranks that another engine reaches.
  virtual Port* port(int rank) = 0;
  // Sends and takes in as much as goes without waiting. True if a put or signal was handed to the
  // landing, or posted bytes left.
  virtual bool progress() = 0;
  // A call has ended with an error: user memory is the user's again. What is still to come for places
  // that the landing named is dropped; what was put from there and has not left is copied.
  virtual void retract() = 0;
  // A call has ended well: its user memory is the user's again, and nothing is to come for it.
  virtual void end_call() {}
  // Everything posted has left this process, and nobody reads it there; what was not stays in
  // shadows, to be sent by later progress().
  virtual bool flushed() const = 0;
  // For a thread with nothing else to do: a descriptor that becomes readable (poll) when progress()
  // would get on, -1: there is none; and how long until it would by the passing of time alone.
  virtual int wait_fd() const = 0;
  virtual std::chrono::nanoseconds due_in() const = 0;  // nanoseconds::max(): never
};

}  // namespace tessera
