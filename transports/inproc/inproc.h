// inproc: ranks of one process read and write each other's buffers where they are.
#pragma once

#include "device/host/place.h"
#include "transports/peer.h"

namespace tessera::inproc {

inline bool reaches(const Peer& self, const Peer& peer) { return self.process == peer.process; }

// Requires reaches().
inline host::Place place(const BufferNote& note) {
  return {static_cast<uintptr_t>(note.address), 0};
}

}  // namespace tessera::inproc
