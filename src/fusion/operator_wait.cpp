// How threads wait for an operator: they drive its plan while there is something to do, then yield,
// then sleep on the rank's doorbell, and look for what is wrong (I6, I10).
#include <algorithm>
#include <optional>
#include <utility>

#include "base/nap.h"
#include "comm/idle.h"
#include "comm/watch.h"
#include "fusion/operator.h"

namespace tessera {
namespace {

// Whose own tiles are missing explains a standstill better than those who wait for it, and all time
// out at about the same moment: these let it speak first.
class Precedence {
 public:
  explicit Precedence(std::chrono::milliseconds timeout) : grace_(timeout / 4) {}

  bool speaks(bool overdue, bool lacks_tiles) {
    if (!overdue) waiting_ = false;
    if (!overdue || lacks_tiles) return overdue;
    if (!waiting_) until_ = Deadline::after(grace_);
    waiting_ = true;
    return until_.passed();
  }

 private:
  std::chrono::milliseconds grace_;
  bool waiting_ = false;
  Deadline until_ = Deadline::after({});
};

// A device reports tiles without a ring; the kernel adds some 50 us to a sleep.
constexpr std::chrono::nanoseconds kSilentSleep{50'000};

// Sleeps until the rank's doorbell rings or something is due at its ports, for `longest` at most,
// unless `look` gets on. Other threads may be at the ports: who sleeps does not hold them, and looks
// at them often.
template <class Look>
void nap(const Core& core, Alarm& alarm, std::chrono::nanoseconds longest, const Look& look) {
  Doorbell* const own[] = {&core.area().doorbell};
  if (!core.ports) return Idle::sleep(own, longest, look);
  std::chrono::nanoseconds due = kCautiousSleep;
  if (std::unique_lock<Ports> inside; core.try_enter(inside)) due = alarm.nap(core.ports->due_in());
  constexpr std::chrono::nanoseconds kCautious = kCautiousSleep;
  const bool awaits_time = due < kCautious;
  if (look() || due.count() == 0) return;
  const Idle::Prepared prepared(own);
  const SharpTimer sharp;
  const auto begin = std::chrono::steady_clock::now();
  if (!look()) {
    sleep_any(prepared.sleepers, 1, std::min({due, longest, kCautious}));
    if (awaits_time) alarm.slept(due, std::chrono::steady_clock::now() - begin);
  }
}

}  // namespace

Status FusedOperator::await(const Counter& counter, uint64_t target, const Visited* visited) {
  Idle idle(core_.yields);
  std::optional<Watch> watch;  // reads clocks: from the first sleep on
  Precedence precedence(core_.config.timeout);
  Alarm alarm;
  uint64_t before = moved();
  while (!counter.reached(target)) {
    if (!core_.health->good()) return failed(core_.health->status());
    const bool drove = idle.fresh() ? drive() : core_.driven.drive();
    if (const uint64_t now = moved(); drove || now != before) {
      before = now;
      idle.reset();
    } else if (idle.next() == Idle::Action::kYield) {
      yield();
    } else {
      nap(core_, alarm, silent_.raised() ? kSilentSleep : Idle::kLongestSleep, [&] {
        const bool drove = core_.driven.drive();
        return drove || counter.reached(target) || moved() != before || !core_.health->good();
      });
      if (!watch) watch.emplace(core_);
      beat(*watch);
      Status s = watch->look(moved(), [&](bool overdue) {
        const bool lacks =
            overdue && visited == nullptr && !tracker_.missing(finished_.counter.value()).empty();
        return precedence.speaks(overdue, lacks) ? standstill(visited) : Status();
      });
      if (!s.ok()) return failed(std::move(s));
    }
  }
  core_.ring(core_.rank);  // whom this thread kept from driving
  return {};
}

void FusedOperator::beat(Watch& watch) const {
  if (std::unique_lock<Ports> inside; core_.try_enter(inside)) watch.beat();
}

// Before the thread leaves: nobody touches the user's memory any more, and ranks of other hosts
// learn of the error.
Status FusedOperator::failed(Status status) {
  const std::lock_guard lock(driver_);
  run_.abandon();
  const auto inside = core_.enter();
  if (core_.ports) core_.ports->retract();
  return status;
}

Status FusedOperator::standstill(const Visited* visited) {
  const uint64_t launch = finished_.counter.value();
  std::string why = visited == nullptr
                        ? tracker_.missing(launch)
                        : fmt::format(
                              "to add tile ({},{}) waits for rank {}, which owns it and "
                              "has not made it",
                              visited->row, visited->col, visited->owner);
  if (why.empty()) {
    const std::lock_guard lock(driver_);
    why = run_.blocked(tile_counters_);
  }
  return Status::error(Code::kTimeout, "{}: {}: launch {} made no progress for {} ms: {}",
                       core_.health->who(), describe(description_), launch + 1,
                       core_.config.timeout.count(), why);
}

}  // namespace tessera
