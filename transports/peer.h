// What the transports know of a rank and of a buffer it announced. Bytes and processes, no
// collectives (I9).
#pragma once

#include <cstdint>

namespace tessera {

struct Peer {
  int rank = 0;
  int pid = 0;
  uint64_t process = 0;  // equal for ranks of one process
};

// A user buffer as its owner announces it to peers. Plain data.
struct BufferNote {
  uint64_t address = 0;     // in the owner's process; 0: no buffer
  uint64_t allocation = 0;  // id of the shareable allocation that holds it; 0: none
  uint64_t offset = 0;      // within that allocation
};

}  // namespace tessera
