// How a communicator comes to be: a handle first, then the communicator below it, here or in the
// background.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>

#include "api/comm_state.h"
#include "api/jobs.h"

namespace tessera::api {

struct Prepared {
  ncclComm_t handle = nullptr;
  std::shared_ptr<CommState> state;
};

struct Birth {
  // Empty: this rank takes part and gets no communicator. The state is kept while the work goes on:
  // an abort meanwhile does not wait for it.
  Prepared child;
  ncclComm_t* out = nullptr;  // the user's variable
  std::function<Result<std::unique_ptr<Communicator>>()> make;
};

// A new state with its handle; starts the worker of a non-blocking communicator.
Result<Prepared> prepare(Settings settings, std::shared_ptr<Clique> clique, int device);

// Makes the communicator and puts it under its handle, or leaves the reason there.
Status give_birth(const Birth& birth);

// Blocking: the handle is handed over when every job of the group has succeeded, and ended
// otherwise.
Job blocking_job(Birth birth);
// Non-blocking: the handle is handed over at once; `start` gets the work and brings it to a
// background thread.
Job background_job(Birth birth, std::function<Status(Stream::Task)> start);

}  // namespace tessera::api
