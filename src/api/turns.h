// The order of a communicator's operations: a ticket for each, served one after the other.
//
// Tickets are taken by the thread that issues an operation (under Slot::call) and served on
// whichever thread runs it. A wait ends because the operations before it end: each has a deadline
// of its own (I6). Thread safety: every member may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tessera::api {

class Turns {
 public:
  uint64_t take() {
    const std::lock_guard lock(mutex_);
    return taken_++;
  }

  // Returns when all earlier tickets are done.
  void wait(uint64_t ticket) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return done_ == ticket; });
  }

  void done() {
    {
      const std::lock_guard lock(mutex_);
      ++done_;
    }
    moved_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  uint64_t taken_ = 0;
  uint64_t done_ = 0;
};

// Waits for one's turn; the turn ends with the scope.
class Turn {
 public:
  explicit Turn(Turns* turns) : Turn(turns, turns->take()) {}
  Turn(Turns* turns, uint64_t ticket) : turns_(turns) { turns_->wait(ticket); }
  ~Turn() { turns_->done(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Turns* turns_;
};

}  // namespace tessera::api
