// The host's space: counters and slots in mapped memory, operands here or in another process.
//
// Thread safety: one thread at a time. Buffers are allocated when the space is made, none later.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/types.h"
#include "device/host/place.h"
#include "device/host/reduce.h"
#include "device/port.h"
#include "exec/interpreter.h"
#include "sync/counter.h"
#include "sync/slot.h"

namespace tessera {

// What a reduction applies to raw inputs and finished results. Scales per member, null where there
// is none.
struct Reduction {
  host::ReduceFn kernel = nullptr;  // null: the collective moves data only
  const void* const* scales = nullptr;
  int64_t divisor = 1;
};

// How a member's memory is written. With a port: the interpreter works on memory of this process
// that stands for the member's (a shadow, or the same memory where the port only delays signals),
// and what changes there goes through the port.
struct MemberWay {
  Doorbell* doorbell = nullptr;
  int poke = -1;              // descriptor that wakes the member where its doorbell cannot
  Port* port = nullptr;       // null: loads and stores reach the member
  std::byte* base = nullptr;  // with a port: where position 0 of the member's memory stands
};

class HostSpace {
 public:
  using Counter = tessera::Counter;
  using SlotHeader = tessera::SlotHeader;
  using Place = host::Place;

  // `max_operands`: of the largest step of any program that will run here.
  explicit HostSpace(uint32_t max_operands);

  // Before each run. `ways`: per member; `ported`: some have ports. `streamed_from`: copies of so
  // many bytes are written past the caches.
  void bind(const MemberWay* ways, bool ported, const Reduction& reduction, uint32_t element_bytes,
            size_t streamed_from) {
    ways_ = ways;
    ported_ = ported;
    streamed_from_ = streamed_from;
    reduction_ = reduction;
    element_bytes_ = element_bytes;
  }
  void reserve(uint32_t max_operands);

  bool reached(const Counter& counter, uint64_t target) const { return counter.reached(target); }
  uint64_t value(const Counter& counter) const { return counter.value(); }
  void publish(uint16_t member, Counter& counter, uint64_t n) {
    if (has_port(member)) return post(member, &counter, PortSignal::Kind::kAdd, n, 0);
    counter.publish(n);
    ring(member);
  }
  void publish_value(uint16_t member, Counter& counter, uint64_t value) {
    if (has_port(member)) return post(member, &counter, PortSignal::Kind::kSet, value, 0);
    counter.publish_value(value);
    ring(member);
  }
  void publish_slot(uint16_t member, SlotHeader* slot, uint64_t value, uint64_t fingerprint) {
    if (has_port(member)) return post(member, slot, PortSignal::Kind::kSlot, value, fingerprint);
    slot->fingerprint = fingerprint;
    slot->counter.publish_value(value);
    ring(member);
  }
  void pause() const { tessera::pause(); }
  // The slot's data will be read as soon as its counter is raised: have its first lines come along
  // with the counter's.
  void expect(const SlotHeader* slot, size_t bytes) const {
    if (bytes <= kSmallData) return;
    __builtin_prefetch(slot + 1);
    __builtin_prefetch(slot + 2);
  }
  // The slot's first lines move here while this rank does other things: fetching them is half of
  // what a small put costs.
  void own_next(uint16_t member, SlotHeader* slot, size_t bytes) const {
    constexpr size_t kDataLines = 4;
    if (has_port(member)) return;
    own_soon(slot);
    if (bytes <= kSmallData) return;
    const size_t lines = std::min((bytes + kCacheLine - 1) / kCacheLine, kDataLines);
    for (size_t i = 1; i <= lines; ++i) own_soon(slot + i);
  }
  Place place(void* pointer) const { return {reinterpret_cast<uintptr_t>(pointer), 0}; }
  void* small_or_data(SlotHeader* slot, size_t bytes) const { return slot_data(slot, bytes); }
  Place* places() { return places_.data(); }
  uint16_t* raw() { return raw_.data(); }
  uint16_t* members() { return members_.data(); }

  bool combine(const Operands<Place>& operands);

  // After a failed combine: the kernel's errno and the process whose memory could not be reached.
  int error() const { return error_; }
  int error_pid() const { return error_pid_; }

 protected:
  // What lies at `data`, memory that stands for the member's, becomes so there too.
  void send(uint16_t member, void* data, size_t bytes) {
    if (has_port(member)) put(member, data, {reinterpret_cast<uintptr_t>(data), 0}, bytes);
  }

 private:
  bool has_port(uint16_t member) const { return ported_ && ways_[member].port != nullptr; }
  void ring(uint16_t member) {
    if (ways_[member].doorbell->ring()) poke(ways_[member].poke);
  }
  void post(uint16_t member, const void* counter, PortSignal::Kind kind, uint64_t value,
            uint64_t fingerprint);
  void put(uint16_t member, const void* data, Place dst, size_t bytes);
  bool copy(const Operands<Place>& operands);
  bool reduce(const Operands<Place>& operands);
  bool reduce_remote(const Operands<Place>& operands);
  bool move(Place dst, Place src, size_t bytes);
  bool scaled(const Operands<Place>& operands) const;

  const MemberWay* ways_ = nullptr;
  bool ported_ = false;
  Reduction reduction_;
  uint32_t element_bytes_ = 1;
  size_t streamed_from_ = 0;
  int error_ = 0, error_pid_ = 0;
  std::vector<Place> places_;
  std::vector<uint16_t> raw_, members_;
  std::vector<const void*> srcs_, scales_;
  std::vector<void*> dsts_;
  std::vector<std::byte> bounce_;  // for operands in other processes; allocated on first use
};

}  // namespace tessera
