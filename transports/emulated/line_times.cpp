#include "transports/emulated/line_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera::emulated {
namespace {

size_t rounded_up(size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

Reservation after_put(Reservation before, uint64_t now, size_t bytes, const Line& line,
                      size_t peers) {
  const double rate = line.rate(peers);
  double length = static_cast<double>(bytes) / rate;
  if (before.until > now)
    length += static_cast<double>(before.until - now) * (line.rate(before.users) / rate);
  const auto users = std::min<size_t>(peers, LinkClock::kMostUsers);
  return {now + static_cast<uint64_t>(std::llround(length)), static_cast<uint32_t>(users)};
}

size_t LineTimes::bytes(const Links& links) {
  const size_t lines = links.lines.size();
  return lines * sizeof(LinkClock) +
         rounded_up(lines * static_cast<size_t>(links.ranks) * sizeof(TimeMark));
}

LineTimes::LineTimes(std::shared_ptr<const Links> links, std::byte* memory)
    : links_(std::move(links)),
      clocks_(reinterpret_cast<LinkClock*>(memory)),
      marks_(reinterpret_cast<TimeMark*>(memory + links_->lines.size() * sizeof(LinkClock))) {}

size_t LineTimes::count_peers(const Hop& hop, uint64_t now) const {
  size_t count = 1;  // this one
  for (int peer = 0; peer < links_->ranks; ++peer) {
    if (peer != hop.peer && mark({hop.line, peer}).get() > now) ++count;
  }
  return count;
}

uint64_t LineTimes::put(int from, int to, size_t bytes, uint64_t now) {
  uint64_t passed = now;
  for (const Hop& hop : links_->way(from, to).hops) {
    const Line& line = links_->lines[static_cast<size_t>(hop.line)];
    const bool counts = line.rates.size() > 1;
    const size_t peers = counts ? count_peers(hop, now) : 1;
    const Reservation use = clocks_[hop.line].advance(
        [&](Reservation before) { return after_put(before, now, bytes, line, peers); });
    if (counts) mark(hop).set(use.until);
    passed = std::max(passed, use.until);
  }
  return passed;
}

}  // namespace tessera::emulated
