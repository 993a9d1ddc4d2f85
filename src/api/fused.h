// The operators that users made, by handle.
//
// A handle is a number, as a communicator's is. Reports of tiles and waits for rows go past the
// registry: a tsrTiles holds the address of the operator, which lives until it is destroyed.
// Thread safety: every function may be called from any thread.
#pragma once

#include <nccl.h>
#include <tessera/fused.h>

#include <memory>

#include "api/comm_state.h"

namespace tessera {
class FusedOperator;
}

namespace tessera::api {

struct Fused {
  ncclComm_t comm = nullptr;
  std::shared_ptr<CommState> state;            // for messages
  std::shared_ptr<Communicator> communicator;  // outlives the operator
  std::unique_ptr<FusedOperator> op;
};

Result<std::shared_ptr<Fused>> find_fused(tsrFused_t handle, const char* function);
tsrFused_t add_fused(std::shared_ptr<Fused> fused);
// Ends the handle.
void drop_fused(tsrFused_t handle);

// In the child of a fork: operators are left behind.
void forget_fused_after_fork();

}  // namespace tessera::api
