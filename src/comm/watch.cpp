#include "comm/watch.h"

namespace tessera {

void Watch::beat() {
  if (next_beat_.passed()) {
    next_beat_ = Deadline::after(kBetweenBeats);
    Counter& pulse = core_.area().pulse.counter;
    pulse.publish(1);
    if (core_.ports) core_.ports->share_value(pulse);
  }
  if (!half_.passed() || !pulses_.empty()) return;
  for (int rank = 0; rank < core_.ranks; ++rank)
    pulses_.push_back(core_.view.rank(rank).pulse.counter.value());
}

std::string Watch::quiet_ranks() const {
  std::string names;
  int quiet = 0;
  bool here = false;
  for (int rank = 0; rank < static_cast<int>(pulses_.size()); ++rank) {
    if (rank == core_.rank || core_.view.rank(rank).pulse.counter.value() > pulses_[rank]) continue;
    here = here || core_.same_process(rank);
    names += (quiet++ > 0 ? ", " : "") + std::to_string(rank);
  }
  if (quiet == 0) return {};
  return std::string(quiet > 1 ? "; ranks " : "; rank ") + names +
         " gave no sign meanwhile (stopped, out of reach, or busy outside of calls)" +
         (here ? "; a thread that runs several ranks puts their calls into one group" : "");
}

}  // namespace tessera
