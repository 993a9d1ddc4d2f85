// Operations that run together, later, on a stream; each communicator in its turn.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "api/comm_state.h"

namespace tessera::api {

struct Batch {
  struct Member {
    std::shared_ptr<CommState> state;
    uint64_t ticket;
    bool reports;  // the call returned kInProgress: the outcome goes to the communicator's Progress
  };
  std::vector<Work> works;
  std::vector<Member> members;  // each communicator of `works` once

  // Under the call lock of the communicator: takes its place in the order.
  void add_member(const std::shared_ptr<CommState>& state, bool reports);
  // Waits for the turns, runs, ends the turns.
  Status run();
};

// The batch now belongs to the stream. Call locks of its members still held, so that tickets and
// queues agree in order.
void enqueue(Stream& stream, Batch batch);

}  // namespace tessera::api
