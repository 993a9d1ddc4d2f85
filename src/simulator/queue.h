// The events of a simulation, in the order of time.
//
// In a collective thousands of things happen at the same instant. Events of one time therefore
// share a bucket, and only buckets are kept in a heap: adding an event to a time that was used
// lately costs a hash and a store.
//
//   heap of times       3.0   4.5   9.0
//                        |     |     |
//   buckets             [..]  [.]  [....]     recent: time -> bucket, a small direct-mapped table
//
// Times are multiples of 2^-20 us, so that what should happen at once does, whatever way each sum
// was rounded. Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <vector>

namespace tessera::simulator {

enum class EventKind : uint8_t { kArrival, kRelease, kReady, kFlows, kMoved, kFlowEnd, kTile };

struct Event {
  uint32_t lane;    // whose event it is: ties are settled in its order
  uint32_t item;    // a signal, flow, core or rank
  uint32_t record;  // what it goes back to
  uint32_t version : 24;
  EventKind kind;

  auto key() const { return std::tuple(lane, kind, item, record); }
  bool operator<(const Event& other) const {
    if (lane != other.lane) return lane < other.lane;
    return key() < other.key();
  }
};

class Queue {
 public:
  static double on_grid(double us) {
    // Greater numbers are multiples anyway: their last bit counts more.
    if (us >= kLastBetween) return us;
    return static_cast<double>(static_cast<int64_t>(us * kGrid + 0.5)) / kGrid;
  }

  void push(double us, const Event& event) { buckets_[bucket_of(on_grid(us))].push_back(event); }

  bool empty() const { return heap_.empty(); }
  double time() const { return heap_.front().time; }

  // All events of the earliest time so far known, in their order.
  void pop(std::vector<Event>& batch) {
    batch.clear();
    const double now = time();
    while (!heap_.empty() && time() == now) {
      std::pop_heap(heap_.begin(), heap_.end());
      const uint32_t bucket = heap_.back().bucket;
      heap_.pop_back();
      std::vector<Event>& events = buckets_[bucket];
      if (batch.empty()) {
        batch.swap(events);
      } else {
        batch.insert(batch.end(), events.begin(), events.end());
        events.clear();
      }
      Recent& recent = recent_[slot(now)];
      if (recent.bucket == bucket) recent.bucket = kNone;
      free_.push_back(bucket);
    }
    sort(batch);
  }

 private:
  // Mostly sorted already, or two sorted runs: ranks 1, 2, ... and then 0.
  static void sort(std::vector<Event>& batch) {
    const auto run = std::is_sorted_until(batch.begin(), batch.end());
    if (run == batch.end()) return;
    if (std::is_sorted(run, batch.end())) {
      std::inplace_merge(batch.begin(), run, batch.end());
    } else {
      std::sort(batch.begin(), batch.end());
    }
  }

  static constexpr double kGrid = 1 << 20;
  static constexpr double kLastBetween = static_cast<double>(uint64_t{1} << 33);
  static constexpr uint32_t kNone = ~0u;
  static constexpr size_t kRecent = 1024;

  struct Entry {
    double time;
    uint32_t bucket;
    bool operator<(const Entry& other) const { return time > other.time; }  // earliest on top
  };
  struct Recent {
    double time = -1;
    uint32_t bucket = kNone;
  };

  static size_t slot(double time) {
    return (std::bit_cast<uint64_t>(time) * 0x9E3779B97F4A7C15u) >> 54;
  }

  uint32_t bucket_of(double time) {
    Recent& recent = recent_[slot(time)];
    if (recent.time == time && recent.bucket != kNone) return recent.bucket;
    uint32_t bucket = static_cast<uint32_t>(buckets_.size());
    if (free_.empty()) {
      buckets_.emplace_back();
    } else {
      bucket = free_.back();
      free_.pop_back();
    }
    heap_.push_back({time, bucket});
    std::push_heap(heap_.begin(), heap_.end());
    recent = {time, bucket};
    return bucket;
  }

  std::vector<Entry> heap_;
  std::vector<std::vector<Event>> buckets_;
  std::vector<uint32_t> free_;
  std::array<Recent, kRecent> recent_;
};

}  // namespace tessera::simulator
