#include "transports/cma/cma.h"

namespace tessera::cma {

bool probe(const Peer& peer, uint64_t word_address) {
  uint64_t word = 0;
  const host::Place here{reinterpret_cast<uintptr_t>(&word), 0};
  const host::Place there{static_cast<uintptr_t>(word_address), peer.pid};
  return host::move(here, there, sizeof(word)) == 0 && word == kProbeWord &&
         host::move(there, here, sizeof(word)) == 0;
}

}  // namespace tessera::cma
