// The receiving side of a port: what has come, in which order it counts.
//
// Over one socket frames come in the order of their numbers. Over several they do not: signals then
// wait here for the frames before them, and a frame that comes twice (it was sent again after a
// socket was lost) counts once.
// Thread safety: one thread. No allocation once as many frames have waited as ever do.
#pragma once

#include <cstdint>
#include <vector>

#include "device/port.h"
#include "transports/tcp/frame.h"

namespace tessera::tcp {

class Arrivals {
 public:
  Arrivals(Landing& landing, int peer, bool in_order)
      : landing_(landing), peer_(peer), in_order_(in_order), window_(64) {}

  // All frames up to this number are complete.
  uint64_t complete() const { return complete_; }
  // The frame has come before.
  bool known(const FrameHeader& header) const;
  // A put's bytes are stored, or a signal has come. False: its number cannot be, or the landing
  // refuses the signal.
  bool arrived(const FrameHeader& header);

 private:
  static constexpr uint64_t kMaxAhead = uint64_t{1} << 22;

  enum class State : uint8_t { kMissing, kStored, kSignal };
  struct Slot {
    State state = State::kMissing;
    PortSignal signal;
  };

  uint64_t number_of(const FrameHeader& header) const;
  Slot& slot(uint64_t number) { return window_[number & (window_.size() - 1)]; }
  const Slot& slot(uint64_t number) const { return window_[number & (window_.size() - 1)]; }
  bool keep(uint64_t number, const FrameHeader& header);
  bool hand_over();

  Landing& landing_;
  const int peer_;
  const bool in_order_;
  uint64_t complete_ = 0;
  // Slots of the numbers after complete_; a power of two.
  std::vector<Slot> window_;
};

}  // namespace tessera::tcp
