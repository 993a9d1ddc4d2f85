// Runs works: one communicator's batch is its collectives in order, and its sends and receives in order per peer and direction;
// all batches of a call make progress together in the caller's thread.
#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "base/log.h"
#include "comm/host_communicator.h"
#include "comm/idle.h"

namespace tessera {
namespace {

HostCommunicator& host_rank(Communicator* comm) { return *static_cast<HostCommunicator*>(comm); }

// Watches a standstill of one communicator: looks for its cause, and for the deadline.
class Watch {
 public:
  explicit Watch(const Core& core) : core_(core), deadline_(Deadline::after(core.config.timeout)) {}

  // After each sleep. `moved` grows with progress; `diagnose(overdue)` explains a standstill.
  template <class Diagnose>
  Status look(uint64_t moved, const Diagnose& diagnose) {
    if (Status s = core_.health->look(); !s.ok()) return s;
    if (moved != moved_) {
      moved_ = moved;
      deadline_ = Deadline::after(core_.config.timeout);
      return {};
    }
    Status s = diagnose(deadline_.passed());
    return s.ok() ? s : core_.health->raise(s);
  }

 private:
  const Core& core_;
  Deadline deadline_;
  uint64_t moved_ = ~uint64_t{0};
};

Status run_collective(HostCommunicator& comm, const Call& call) {
  Core& core = comm.core();
  CollectiveRun& run = comm.collective();
  if (!core.health->good()) return core.health->status();
  if (Status s = run.begin(call); !s.ok()) return core.health->raise(s);
  Progress progress = run.advance(core.spins);
  if (progress == Progress::kDone) return {};
  Idle idle(core.yields);
  Watch watch(core);
  while (progress == Progress::kBlocked) {
    if (!core.health->good()) return core.health->status();
    if (idle.next() == Idle::Action::kYield) {
      yield();
    } else {
      Doorbell* const own[] = {core.doorbells[core.rank]};
      const uint64_t before = run.moved();
      Idle::sleep(own, [&] {
        progress = run.advance(0);
        return progress != Progress::kBlocked || run.moved() != before || !core.health->good();
      });
      if (progress != Progress::kBlocked) break;
      Status s = watch.look(run.moved(), [&](bool overdue) { return run.diagnose(overdue); });
      if (!s.ok()) return s;
    }
    const uint64_t before = run.moved();
    progress = run.advance(core.spins);
    if (run.moved() != before) idle.reset();
  }
  return progress == Progress::kDone ? Status() : run.status();
}

// The sends or receives between this rank and one peer, in order.
struct Queue {
  PairRun* run;
  std::deque<const Call*> calls;
  bool begun = false;
};

class Batch {
 public:
  explicit Batch(HostCommunicator& comm) : comm_(comm), core_(comm.core()), watch_(core_) {}

  HostCommunicator& comm() { return comm_; }
  const Status& status() const { return status_; }
  bool done() const { return done_; }

  void add(const Call& call) {
    if (call.collective != Collective::kSendRecv) {
      collectives_.push_back(&call);
    } else if (call.root == core_.rank) {
      (call.receives ? self_receives_ : self_sends_).push_back(&call);
    } else {
      PairRun* run = &comm_.pair(call.root, call.receives);
      auto queue = std::find_if(queues_.begin(), queues_.end(),
                                [&](const Queue& q) { return q.run == run; });
      if (queue == queues_.end()) queue = queues_.insert(queue, Queue{run, {}});
      queue->calls.push_back(&call);
    }
  }

  // Transfers of a rank to itself are plain copies; they must match within the batch.
  Status match_self() {
    for (size_t i = 0; i < std::max(self_sends_.size(), self_receives_.size()); ++i) {
      if (i >= self_sends_.size() || i >= self_receives_.size()) {
        return Status::error(Code::kInvalidUsage,
                             "{}: {} to itself without the matching {} in the same group",
                             core_.health->who(), i < self_sends_.size() ? "send" : "receive",
                             i < self_sends_.size() ? "receive" : "send");
      }
      const Call &send = *self_sends_[i], &receive = *self_receives_[i];
      if (send.count != receive.count || send.type != receive.type) {
        return Status::error(Code::kInvalidUsage,
                             "{}: send to itself of {} {} meets a receive of {} {}",
                             core_.health->who(), send.count, to_string(send.type), receive.count,
                             to_string(receive.type));
      }
      if (receive.recv != send.send && send.count > 0)
        std::memmove(receive.recv, send.send, send.count * size_of(send.type));
    }
    return {};
  }

  void begin() {
    Status s = core_.health->good() ? match_self() : core_.health->status();
    if (!s.ok()) finish(s);
  }

  // Lets everything of this batch go on as far as it can; true if anything moved.
  bool advance() {
    if (done_) return false;
    if (!core_.health->good()) {
      finish(core_.health->status());
      return true;
    }
    const uint64_t before = moved();
    bool waiting = advance_collectives();
    for (Queue& queue : queues_) {
      if (done_) return true;
      waiting = advance_queue(queue) || waiting;
    }
    if (!waiting && !done_) finish({});
    return done_ || moved() != before;
  }

  void look() {
    if (done_) return;
    Status s = watch_.look(moved(), [&](bool overdue) { return diagnose(overdue); });
    if (!s.ok()) finish(s);
  }

 private:
  void finish(Status status) {
    status_ = std::move(status);
    done_ = true;
  }

  uint64_t moved() const {
    uint64_t moved = finished_ + comm_.collective().moved();
    for (const Queue& queue : queues_) moved += queue.run->moved();
    return moved;
  }

  // True while a collective is still to be done.
  bool advance_collectives() {
    CollectiveRun& run = comm_.collective();
    while (next_ < collectives_.size()) {
      if (!begun_) {
        if (Status s = run.begin(*collectives_[next_]); !s.ok()) {
          finish(core_.health->raise(s));
          return true;
        }
        begun_ = true;
      }
      const Progress progress = run.advance(0);
      if (progress == Progress::kBlocked) return true;
      if (progress != Progress::kDone) {
        finish(run.status());
        return true;
      }
      begun_ = false;
      ++next_;
      finished_ += kMoves;
    }
    return false;
  }

  bool advance_queue(Queue& queue) {
    while (!queue.calls.empty()) {
      if (!queue.begun) {
        if (Status s = queue.run->begin(*queue.calls.front()); !s.ok()) {
          finish(core_.health->raise(s));
          return true;
        }
        queue.begun = true;
      }
      const Progress progress = queue.run->advance(0);
      if (progress == Progress::kBlocked) return true;
      if (progress != Progress::kDone) {
        finish(queue.run->status());
        return true;
      }
      queue.begun = false;
      queue.calls.pop_front();
      finished_ += kMoves;
    }
    return false;
  }

  Status diagnose(bool overdue) {
    if (begun_) {
      if (Status s = comm_.collective().diagnose(overdue); !s.ok()) return s;
    }
    for (Queue& queue : queues_) {
      if (!queue.begun) continue;
      if (Status s = queue.run->diagnose(overdue); !s.ok()) return s;
    }
    return {};
  }

  // Added per finished call so that moved() grows although a run's own count starts again from zero.
  static constexpr uint64_t kMoves = uint64_t{1} << 32;

  HostCommunicator& comm_;
  Core& core_;
  Watch watch_;
  std::vector<const Call*> collectives_, self_sends_, self_receives_;
  std::vector<Queue> queues_;
  size_t next_ = 0;
  bool begun_ = false;
  bool done_ = false;
  uint64_t finished_ = 0;
  Status status_;
};

bool advance_all(std::deque<Batch>& batches) {
  bool moved = false;
  for (Batch& batch : batches) moved = batch.advance() || moved;
  return moved;
}

Status run_batches(std::deque<Batch>& batches) {
  std::vector<Doorbell*> doorbells;
  for (Batch& batch : batches) {
    Core& core = batch.comm().core();
    doorbells.push_back(core.doorbells[core.rank]);
    batch.begin();
  }
  const auto all_done = [&] {
    return std::all_of(batches.begin(), batches.end(), [](const Batch& b) { return b.done(); });
  };
  Core& first = batches.front().comm().core();
  Idle idle(first.yields);
  int spun = 0;
  while (!all_done()) {
    if (advance_all(batches)) {
      idle.reset();
      spun = 0;
    } else if (spun++ < first.spins) {
      pause();
    } else if (idle.next() == Idle::Action::kYield) {
      spun = 0;
      yield();
    } else {
      Idle::sleep(doorbells, [&] { return advance_all(batches); });
      for (Batch& batch : batches) batch.look();
    }
  }
  for (Batch& batch : batches) {
    if (!batch.status().ok()) return batch.status();
  }
  return {};
}

}  // namespace

Status execute(std::span<const Work> works) {
  if (works.empty()) return {};
  if (works.size() == 1 && works[0].call.collective != Collective::kSendRecv)
    return run_collective(host_rank(works[0].comm), works[0].call);
  std::deque<Batch> batches;  // stay where they are
  for (const Work& work : works) {
    HostCommunicator& comm = host_rank(work.comm);
    auto batch = std::find_if(batches.begin(), batches.end(),
                              [&](Batch& b) { return &b.comm() == &comm; });
    (batch != batches.end() ? *batch : batches.emplace_back(comm)).add(work.call);
  }
  return run_batches(batches);
}

}  // namespace tessera
