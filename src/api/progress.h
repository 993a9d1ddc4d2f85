// What a non-blocking communicator still has running in the background, and the first error that
// came of it. Thread safety: every member may be called from any thread.
#pragma once

#include <mutex>

#include "base/status.h"

namespace tessera::api {

class Progress {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  void end(const Status& status) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (error_.ok()) error_ = status;
  }
  bool running() const {
    const std::lock_guard lock(mutex_);
    return running_ > 0;
  }
  // kInProgress never; ask running() first. Sticky.
  Status error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  int running_ = 0;
  Status error_;
};

}  // namespace tessera::api
