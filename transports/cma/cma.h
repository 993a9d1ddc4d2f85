// cma: single copies between processes of one host through the kernel (cross-memory attach), where
// it allows them. Whether it does depends on users, capabilities, ptrace scope and seccomp, so it
// is probed, never guessed.
#pragma once

#include "device/host/place.h"
#include "transports/peer.h"

namespace tessera::cma {

// What probe() looks for: every rank keeps one in its own memory and tells its address.
inline constexpr uint64_t kProbeWord = 0x7465737365726121;

// True if this process may read and write the peer's memory: reads the peer's word and writes it
// back unchanged.
bool probe(const Peer& peer, uint64_t word_address);

inline host::Place place(const Peer& peer, const BufferNote& note) {
  return {static_cast<uintptr_t>(note.address), peer.pid};
}

}  // namespace tessera::cma
