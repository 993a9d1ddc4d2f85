// When bytes have passed the lines between ranks: the model of time.
//
// A line keeps a backlog, the time it needs for what was posted to it and has not passed:
//
//   backlog(t) = max(0, until - t)
//   put of b bytes at time t:   until' = t + backlog(t) * rate(k') / rate(k) + b / rate(k)
//   the put has passed its way when it has passed each of its lines: max over lines of until'
//   a signal arrives a latency after all puts before it on its port have passed
//
// k is the number of peers that use the line at the time, this one included, and k' what it was when
// `until` was computed: a backlog drains at the rate of the present. A line with one rate does not
// count.
//
// What follows: a flow that meets nobody gets b / (slowest line) + latency. A line never carries
// more than its rate over any time in which it is asked for more, and never rests while it has a
// backlog. Each line serves puts whole and in the order of posting, so that those who post in turn
// get equal shares. Lines of one way are taken at the same time (a put held up at one of them does
// not hold up the others), as packets of several flows would pass.
//
// Thread safety: any number of threads and processes, but for one pair (from, to) one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sync/link_clock.h"
#include "transports/emulated/links.h"

namespace tessera::emulated {

// The second line of the model, for one line.
Reservation after_put(Reservation before, uint64_t now, size_t bytes, const Line& line,
                      size_t peers);

class LineTimes {
 public:
  // Shared memory for it, zeroed at first; a multiple of a cache line.
  static size_t bytes(const Links& links);

  // `memory` is aligned to a cache line.
  LineTimes(std::shared_ptr<const Links> links, std::byte* memory);

  // A put of so many bytes at time `now` (ns): when it has passed its way.
  uint64_t put(int from, int to, size_t bytes, uint64_t now);

 private:
  size_t count_peers(const Hop& hop, uint64_t now) const;
  TimeMark& mark(const Hop& hop) const {
    return marks_[static_cast<size_t>(hop.line) * static_cast<size_t>(links_->ranks) +
                  static_cast<size_t>(hop.peer)];
  }

  std::shared_ptr<const Links> links_;
  LinkClock* clocks_;  // by line
  // By line and peer: until when that peer uses it. A pair's thread alone writes its own.
  TimeMark* marks_;
};

}  // namespace tessera::emulated
