// What one call of execute() asks of one communicator: its collectives in order, and its sends and
// receives in order per peer and direction, all progressing together. A state machine that never
// blocks.
//
// One object per communicator, used again for every call, so that repeated calls allocate nothing.
// Thread safety: one thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/core.h"
#include "comm/pair_run.h"
#include "comm/watch.h"

namespace tessera {

class HostCommunicator;

class Batch {
 public:
  Batch(HostCommunicator& comm, Core& core) : comm_(comm), core_(core) {}

  Core& core() { return core_; }
  bool open() const { return open_; }
  bool done() const { return done_; }
  const Status& status() const { return status_; }

  // Opens the batch if it is not, and adds a call that must stay where it is until the batch is
  // closed.
  void add(const Call& call);
  // After the last add(): transfers of the rank to itself are made now; they must match within the
  // batch.
  void begin();
  // Lets everything go on as far as it can; true if anything moved.
  bool advance();
  // After a sleep: ends the batch if something is wrong or overdue.
  void look();
  // When done: forgets the calls; returns the outcome.
  Status close();

 private:
  // The sends or receives between this rank and one peer, in order.
  struct Queue {
    PairRun* run = nullptr;
    std::vector<const Call*> calls;
    size_t next = 0;
    bool begun = false;
  };

  void finish(Status status);
  uint64_t moved() const;
  bool advance_collectives();
  bool advance_queue(Queue& queue);
  Queue& queue(PairRun& run);
  Status match_self();
  Status diagnose(bool overdue);

  HostCommunicator& comm_;
  Core& core_;
  std::optional<Watch> watch_;  // reads clocks: from the first sleep on
  std::vector<const Call*> collectives_, self_sends_, self_receives_;
  std::vector<Queue> queues_;  // the first used_ are in use
  size_t used_ = 0;
  size_t next_ = 0;     // collective
  bool begun_ = false;  // that collective
  bool open_ = false;
  bool done_ = false;
  uint64_t finished_ = 0;
  Status status_;
};

}  // namespace tessera
