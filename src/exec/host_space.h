// The host's space: counters and slots in mapped memory, operands here or in another process.
//
// Thread safety: one thread at a time. Buffers are allocated when the space is made, none later.
#pragma once

#include <memory>
#include <vector>

#include "base/types.h"
#include "device/host/place.h"
#include "device/host/reduce.h"
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

class HostSpace {
 public:
  using Counter = tessera::Counter;
  using SlotHeader = tessera::SlotHeader;
  using Place = host::Place;

  // `max_operands`: of the largest step of any program that will run here.
  explicit HostSpace(uint32_t max_operands);

  // Before each run. `doorbells`: per member. `streamed_from`: copies of so many bytes are written
  // past the caches.
  void bind(Doorbell* const* doorbells, const Reduction& reduction, uint32_t element_bytes,
            size_t streamed_from) {
    doorbells_ = doorbells;
    streamed_from_ = streamed_from;
    reduction_ = reduction;
    element_bytes_ = element_bytes;
  }
  void reserve(uint32_t max_operands);

  bool reached(const Counter& counter, uint64_t target) const { return counter.reached(target); }
  uint64_t value(const Counter& counter) const { return counter.value(); }
  void publish(Counter& counter, uint64_t n) { counter.publish(n); }
  void publish_value(Counter& counter, uint64_t value) { counter.publish_value(value); }
  void ring(uint16_t member) { doorbells_[member]->ring(); }
  void pause() const { tessera::pause(); }
  // The slot's data will be read as soon as its counter is raised: have its first lines come along
  // with the counter's.
  void expect(const SlotHeader* slot) const {
    __builtin_prefetch(slot + 1);
    __builtin_prefetch(slot + 2);
  }
  // A sender may have run ahead.
  void expect_next(const SlotHeader* slot) const { __builtin_prefetch(slot); }
  Place place(void* pointer) const { return {reinterpret_cast<uintptr_t>(pointer), 0}; }
  void* small_or_data(SlotHeader* slot, size_t bytes) const { return slot_data(slot, bytes); }
  Place* places() { return places_.data(); }
  uint16_t* raw() { return raw_.data(); }

  bool combine(const Operands<Place>& operands);

  // After a failed combine: the kernel's errno and the process whose memory could not be reached.
  int error() const { return error_; }
  int error_pid() const { return error_pid_; }

 private:
  bool copy(const Operands<Place>& operands);
  bool reduce(const Operands<Place>& operands);
  bool reduce_remote(const Operands<Place>& operands);
  bool move(Place dst, Place src, size_t bytes);
  bool scaled(const Operands<Place>& operands) const;

  Doorbell* const* doorbells_ = nullptr;
  Reduction reduction_;
  uint32_t element_bytes_ = 1;
  size_t streamed_from_ = 0;
  int error_ = 0, error_pid_ = 0;
  std::vector<Place> places_;
  std::vector<uint16_t> raw_;
  std::vector<const void*> srcs_, scales_;
  std::vector<void*> dsts_;
  std::vector<std::byte> bounce_;  // for operands in other processes; allocated on first use
};

}  // namespace tessera
