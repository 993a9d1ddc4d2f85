// Sleeping towards a point in time, more sharply than the kernel does by itself.
//
// A sleep ends late: by the timer's slack (50 us by default) and by the time that waking takes. So
// a thread that must act at a time sleeps until shortly before it, and looks from then on. How
// early it has to wake is learnt, for looking costs a core as long as it lasts.
//
//   const auto nap = alarm.nap(due_in);
//   if (nap.count() == 0) look again;
//   else { SharpTimer sharp; sleep at most `nap`; alarm.slept(nap, how long it took); }
//
// Thread safety: one alarm per thread.
#pragma once

#include <algorithm>
#include <chrono>

namespace tessera {

class Alarm {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr Time kLeastEarly{4'000}, kMostEarly{50'000};

  // How long to sleep when something is due in `due`; 0: no longer.
  Time nap(Time due) const { return due > early_ ? due - early_ : Time(0); }

  // After a sleep. One that took less than `nap` was ended by something else and says nothing.
  // Later than expected counts at once, sooner little by little.
  void slept(Time nap, Time took) {
    if (took < nap) return;
    const Time wanted = (took - nap) * 3 / 2;
    early_ = std::clamp(wanted > early_ ? wanted : early_ - (early_ - wanted) / 8, kLeastEarly,
                        kMostEarly);
  }

 private:
  Time early_{20'000};
};

// While it lives, the calling thread's timers have no slack. Two short system calls.
class SharpTimer {
 public:
  SharpTimer();
  ~SharpTimer();
  SharpTimer(const SharpTimer&) = delete;
  SharpTimer& operator=(const SharpTimer&) = delete;

 private:
  int slack_;  // before; ns
};

}  // namespace tessera
