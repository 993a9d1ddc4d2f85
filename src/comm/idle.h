// How a thread waits when nothing it drives can go on: a few yields, then a sleep on the doorbells
// of all ranks it drives (I10).
//
// Use: call next() after each fruitless round; reset() after a fruitful one. On kSleep:
// sleep(doorbells, longest, look), where `look` tries once more and returns true if it got on (then
// there is no sleep). `longest`: kLongestSleep, so that health and deadlines are looked after (I6);
// less where something comes that rings none of these doorbells. comm/sleep.h knows of ports, too.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>

#include "sync/counter.h"

namespace tessera {

class Idle {
 public:
  enum class Action : uint8_t { kYield, kSleep };
  static constexpr std::chrono::milliseconds kLongestSleep{20};

  struct Prepared {  // announced on doorbells until this ends
    explicit Prepared(std::span<Doorbell* const> doorbells)
        : count(static_cast<int>(std::min<size_t>(doorbells.size(), kMaxSleepers))) {
      for (int i = 0; i < count; ++i) sleepers[i] = {doorbells[i], doorbells[i]->prepare()};
    }
    ~Prepared() {
      for (int i = 0; i < count; ++i) sleepers[i].doorbell->cancel();
    }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;

    const int count;
    Sleeper sleepers[kMaxSleepers];
  };

  explicit Idle(int yields) : yields_(yields) {}

  void reset() { done_ = 0; }
  bool fresh() const { return done_ == 0; }  // no fruitless round yet
  Action next() { return done_++ < yields_ ? Action::kYield : Action::kSleep; }

  template <class Look>
  static void sleep(std::span<Doorbell* const> doorbells, std::chrono::nanoseconds longest,
                    const Look& look) {
    const Prepared prepared(doorbells);
    if (!look()) sleep_any(prepared.sleepers, prepared.count, longest);
  }

 private:
  int yields_;
  int done_ = 0;
};

}  // namespace tessera
