// A communicator as the layers above see it: one rank's membership, its linked plans and its state.
//
// Below the C API: no NCCL types here. api/ owns the handle registry, groups, streams and the
// translation of Status.
// Thread safety: at most one thread inside the members of one object at a time, except where a
// member says otherwise.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "base/types.h"
#include "comm/bootstrap.h"

namespace tessera {

// One call of a user, arguments checked for range by api/. Elements, not bytes.
struct Call {
  Collective collective = Collective::kBarrier;
  // kSendRecv only: this side receives (recv set, send null), else it sends
  bool receives = false;
  const void* send = nullptr;  // null where the collective has no such buffer on this rank
  void* recv = nullptr;
  size_t count = 0;  // elements of one block (see plan/shape.h)
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = -1;        // root, or the peer of kSendRecv (may be the own rank)
  uint64_t scalar = 0;  // kPreMulSum: the bits of this rank's factor, in `type`
};

struct CommOptions {
  Config config;
  std::string name;  // for messages; may be empty
};

class Communicator;

// One piece of work for execute().
struct Work {
  Communicator* comm = nullptr;
  Call call;
};

// Runs works to completion, in the caller's thread. All of them make progress together: several
// ranks driven by one thread, several communicators, any mix of collectives and send/recv.
// Collectives of one communicator run in the order given; sends and receives progress concurrently
// with them, in order per peer and direction. Returns the first error; every work has then ended
// (completed or failed), none is left running. One work on an idle communicator takes the fast
// path: no allocation and no lock.
Status execute(std::span<const Work> works);

class Communicator {
 public:
  // All ranks call it; blocks until all have joined or the deadline (config.timeout) has passed.
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, int ranks, int rank,
                                                      CommOptions options);
  virtual ~Communicator() = default;  // local; never blocks for peers

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const CommOptions& options() const = 0;

  // Collective over all ranks of this communicator. color < 0: this rank gets no communicator
  // (null).
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key, CommOptions options) = 0;
  // Collective over the ranks not listed; works when listed ranks are dead and when the parent has
  // failed. `excluded`: sorted, unique, in range, without the own rank (api/ checks).
  virtual Result<std::unique_ptr<Communicator>> shrink(std::span<const int> excluded,
                                                       CommOptions options) = 0;
  // Collective: waits until all ranks have called it.
  virtual Status finalize() = 0;

  // First error this communicator met, own or told by a peer; ok while healthy. Sticky. Any thread.
  virtual Status error() const = 0;
  // Ends every wait of this rank soon (well under a second) with kRemote or kInvalidUsage, and
  // tells the peers "rank r aborted" / "rank r revoked". Local, never blocks. Any thread, also
  // while another is inside execute().
  virtual void abort() = 0;
  virtual void revoke() = 0;

  // Collective over all ranks. Memory from tessera::memory_allocate becomes mapped by every peer on
  // this host, so that collectives whose buffers lie in windows copy between user buffers only.
  // Other memory is accepted and gains nothing (logged). `out` identifies the window for
  // deregister_window.
  virtual Status register_window(void* pointer, size_t bytes, uint64_t* out) = 0;
  virtual Status deregister_window(uint64_t window) = 0;

  // Microseconds that a call would take, as the tuner sees it, buffers mapped by all.
  virtual double estimate(const Call& call) = 0;
};

}  // namespace tessera
