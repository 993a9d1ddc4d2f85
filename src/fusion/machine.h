// The links between a communicator's ranks as the model of fused operators sees them: a graph with
// one link for each line, whose bytes go in turn.
//
//   emulated links   the lines of the emulation, exactly
//   several hosts    a line into and out of each host (tuner's Network), and the host's memory
//   one host         each rank stores as fast as it copies (tuner's HostCosts)
//
// Ranks sit on cores of their own, so that a rank's puts leave one after the other.
// Thread safety: immutable.
#pragma once

#include <memory>

#include "simulator/routes.h"
#include "transports/emulated/links.h"
#include "tuner/candidate.h"

namespace tessera {

// The routes own their graph. `emulated` may be null.
std::unique_ptr<simulator::Routes> fused_machine(const emulated::Links* emulated, const Site& site);

}  // namespace tessera
