// Sharing of user buffers: which of this rank's allocations peers have mapped, which of theirs this
// rank has, and where a peer's announced buffer can be reached.
//
// An allocation's descriptor is sent to a peer when the first bulk call with it is announced to
// that peer (or when a window is registered); both sides know from the announcement that this is
// so. An allocation that was freed is named in the next announcement, and peers unmap it.
// Nothing here blocks: sends and receives are tried and repeated by the caller.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "comm/core.h"
#include "device/host/place.h"
#include "transports/shm/mappings.h"

namespace tessera {

class Sharing {
 public:
  explicit Sharing(Core& core) : core_(core) {}

  // Describes an own buffer to peers.
  BufferNote note(const void* pointer, size_t bytes);
  // True if every rank of the communicator can reach the buffer by load and store, once shared.
  bool shareable(const BufferNote& note) const {
    return note.address == 0 || core_.one_process || note.allocation != 0;
  }

  // Sends the allocation to the peer unless it was sent. True when it is there; false: try again.
  Result<bool> give(int peer, const BufferNote& note);
  // Gets and maps the peer's allocation unless it is mapped. True when it is; false: try again.
  Result<bool> take(int peer, const BufferNote& note);

  // An allocation that was freed since it was given to `peer` (to anyone: -1), to be put into an
  // announcement; 0: none.
  uint64_t freed(int peer);
  void forget(int peer, uint64_t allocation) { mappings_.remove(peer, allocation); }

  // Where the peer's buffer is. Requires: mapped was decided and take() succeeded, or single copies
  // are possible.
  host::Place place(int peer, const BufferNote& note) const;

 private:
  struct Given {
    uint64_t allocation;
    const void* base;
    std::vector<bool> to;  // by rank
  };
  Core& core_;
  std::vector<Given> given_;
  shm::Mappings mappings_;
};

}  // namespace tessera
