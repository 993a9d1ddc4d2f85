#include "comm/batch.h"

#include <algorithm>
#include <cstring>

#include "comm/host_communicator.h"

namespace tessera {
namespace {

// Added per finished call, so that moved() changes although a run's own count starts again from
// zero.
constexpr uint64_t kMoves = uint64_t{1} << 48;

}  // namespace

void Batch::add(const Call& call) {
  open_ = true;
  if (call.collective != Collective::kSendRecv) {
    collectives_.push_back(&call);
  } else if (call.root == core_.rank) {
    (call.receives ? self_receives_ : self_sends_).push_back(&call);
  } else {
    queue(comm_.pair(call.root, call.receives)).calls.push_back(&call);
  }
}

Batch::Queue& Batch::queue(PairRun& run) {
  for (size_t i = 0; i < used_; ++i) {
    if (queues_[i].run == &run) return queues_[i];
  }
  if (used_ == queues_.size()) queues_.emplace_back();
  Queue& queue = queues_[used_++];
  queue.run = &run;
  queue.next = 0;
  queue.begun = false;
  queue.calls.clear();
  return queue;
}

void Batch::begin() {
  done_ = begun_ = false;
  next_ = 0;
  watch_.reset();
  Status s = core_.health->good() ? match_self() : core_.health->status();
  if (!s.ok()) finish(s);
}

Status Batch::match_self() {
  for (size_t i = 0; i < std::max(self_sends_.size(), self_receives_.size()); ++i) {
    if (i >= self_sends_.size() || i >= self_receives_.size()) {
      const bool sends = i < self_sends_.size();
      return Status::error(
          Code::kInvalidUsage, "{}: {} to itself without the matching {} in the same group",
          core_.health->who(), sends ? "send" : "receive", sends ? "receive" : "send");
    }
    const Call &send = *self_sends_[i], &receive = *self_receives_[i];
    if (send.count * size_of(send.type) != receive.count * size_of(receive.type)) {
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

bool Batch::advance() {
  if (done_) return false;
  if (!core_.health->good()) {
    finish(core_.health->status());
    return true;
  }
  const uint64_t before = moved();
  bool waiting = advance_collectives();
  for (size_t i = 0; i < used_ && !done_; ++i) waiting = advance_queue(queues_[i]) || waiting;
  if (!waiting && !done_) finish({});
  if (done_) return true;
  const bool carried = core_.progress();  // after the runs: what they posted leaves together
  return carried || moved() != before;
}

void Batch::look() {
  if (done_) return;
  if (!watch_) watch_.emplace(core_);
  watch_->beat();
  Status s = watch_->look(moved(), [&](bool overdue) { return diagnose(overdue); });
  if (!s.ok()) finish(s);
}

Status Batch::close() {
  collectives_.clear();
  self_sends_.clear();
  self_receives_.clear();
  used_ = 0;
  open_ = false;
  return std::exchange(status_, Status());
}

void Batch::finish(Status status) {
  if (!status.ok()) {
    comm_.collective().abandon();
    for (size_t i = 0; i < used_; ++i) queues_[i].run->abandon();
  }
  status_ = std::move(status);
  done_ = true;
}

uint64_t Batch::moved() const {
  uint64_t moved = finished_ + comm_.collective().moved();
  for (size_t i = 0; i < used_; ++i) moved += queues_[i].run->moved();
  return moved;
}

// True while a collective is still to be done.
bool Batch::advance_collectives() {
  CollectiveRun& run = comm_.collective();
  for (; next_ < collectives_.size(); ++next_, begun_ = false, finished_ += kMoves) {
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
  }
  return false;
}

// True while a transfer of the queue is still to be done.
bool Batch::advance_queue(Queue& queue) {
  for (; queue.next < queue.calls.size(); ++queue.next, queue.begun = false, finished_ += kMoves) {
    if (!queue.begun) {
      if (Status s = queue.run->begin(*queue.calls[queue.next]); !s.ok()) {
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
  }
  return false;
}

Status Batch::diagnose(bool overdue) {
  if (begun_) {
    if (Status s = comm_.collective().diagnose(overdue); !s.ok()) return s;
  }
  for (size_t i = 0; i < used_; ++i) {
    if (!queues_[i].begun) continue;
    if (Status s = queues_[i].run->diagnose(overdue); !s.ok()) return s;
  }
  return {};
}

}  // namespace tessera
