// emulated: ports between ranks of one machine that share memory, as fast and as slow as described
// links (links.h) by the model of line_times.h.
//
// A put's bytes are stored at once, in the receiver's memory: `shadow` is where they belong. What
// is held back is the signal. Nobody may look at bytes before their counter has moved, so that is
// all it takes.
//
//   put     copies `data` to `shadow` if they differ, and takes time on the lines
//   signal  goes into the pair's ring with the time when it is due; the receiver's progress() hands
//           it to the landing from then on. Landing::locate() is not called.
//
// Waiting burns no core: due_in() says when the next signal is due, and the receiver's doorbell is
// rung when a new one comes (also a sender's, when a ring that was full has room again); see
// base/nap.h for how to sleep that long.
//
// Failure: a signal that the landing refuses ends what that peer can say (Landing::closed). A peer
// that died is not noticed here: its signals cease. What it had posted still arrives in time.
//
// Memory that copies more slowly than a link carries cannot emulate it: the rank's first late put
// writes a warning with the factor by which the links would have to be slower.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "device/port.h"
#include "sync/counter.h"
#include "transports/emulated/links.h"

namespace tessera::emulated {

// Of memory that all ranks map, zeroed at first, aligned to a cache line: clocks and rings. Address
// space of 5 KB per pair of ranks; pages come with their first use.
size_t shared_bytes(const Links& links);

// `doorbells`: by rank; the own one is rung by peers. All ranks' links are equal. Links, memory,
// doorbells and landing outlive the engine.
std::unique_ptr<PortEngine> make_engine(std::shared_ptr<const Links> links, int rank,
                                        std::byte* shared, std::span<Doorbell* const> doorbells,
                                        Landing& landing);

}  // namespace tessera::emulated
