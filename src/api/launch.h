// Runs what a group collected.
#pragma once

#include <memory>
#include <span>

#include "api/requests.h"

namespace tessera::api {

struct Collected {
  ncclComm_t handle;
  std::shared_ptr<CommState> state;
  Call call;
  cudaStream_t stream;
};

// Every send to the own rank needs its receive in the group, in the same order and of the same
// size. Else kInvalidUsage.
Status match_own_sends(std::span<const Collected> items);

// Everything on stream 0 or foreign streams runs here, together; what belongs to asynchronous
// streams or non-blocking communicators is enqueued. All works of one communicator go one way: to
// its first asynchronous stream, which the other streams it names wait for. kInProgress when a
// non-blocking communicator took part.
Status launch(std::span<const Collected> items);

}  // namespace tessera::api
