#include "transports/tcp/arrivals.h"

namespace tessera::tcp {
namespace {

PortSignal signal_of(const FrameHeader& header) {
  return {header.position, header.value, header.fingerprint,
          static_cast<PortSignal::Kind>(header.signal_kind)};
}

}  // namespace

// Numbers on the way lie within half a turn of the low half around complete_.
uint64_t Arrivals::number_of(const FrameHeader& header) const {
  const auto distance = static_cast<int32_t>(header.number - static_cast<uint32_t>(complete_));
  return complete_ + static_cast<uint64_t>(int64_t{distance});
}

bool Arrivals::known(const FrameHeader& header) const {
  const uint64_t number = number_of(header);
  if (number <= complete_) return true;
  return number - complete_ <= window_.size() && slot(number).state != State::kMissing;
}

bool Arrivals::arrived(const FrameHeader& header) {
  const uint64_t number = number_of(header);
  if (number == complete_ + 1) {
    complete_ = number;
    if (header.kind == FrameKind::kSignal && !landing_.signalled(peer_, signal_of(header)))
      return false;
    return hand_over();
  }
  if (in_order_) return false;
  return keep(number, header);
}

bool Arrivals::keep(uint64_t number, const FrameHeader& header) {
  if (known(header)) return true;
  if (number - complete_ > kMaxAhead) return false;
  while (number - complete_ > window_.size()) {
    std::vector<Slot> larger(window_.size() * 2);
    for (uint64_t n = complete_ + 1; n <= complete_ + window_.size(); ++n)
      larger[n & (larger.size() - 1)] = slot(n);
    window_.swap(larger);
  }
  Slot& own = slot(number);
  if (header.kind == FrameKind::kSignal) {
    own = {State::kSignal, signal_of(header)};
  } else {
    own.state = State::kStored;
  }
  return true;
}

// What waited for the frame that has just come.
bool Arrivals::hand_over() {
  while (slot(complete_ + 1).state != State::kMissing) {
    Slot& next = slot(++complete_);
    const bool is_signal = next.state == State::kSignal;
    next.state = State::kMissing;
    if (is_signal && !landing_.signalled(peer_, next.signal)) return false;
  }
  return true;
}

}  // namespace tessera::tcp
