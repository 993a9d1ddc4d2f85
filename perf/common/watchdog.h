// Ends calls that take longer than -T allows: aborts the process's communicators, so that the
// blocked call returns an error, and ends the process itself should that not help.
//
// Thread safety: enter, leave and expired from any thread.
#pragma once

#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::perf {

class Watchdog {
 public:
  // threads: how many may be in a call at once. timeout 0: never fires and costs nothing.
  Watchdog(std::chrono::seconds timeout, int threads);
  ~Watchdog();

  void watch(std::vector<ncclComm_t> comms);
  void enter(int thread);
  void leave(int thread);
  bool expired();

 private:
  using Clock = std::chrono::steady_clock;
  void guard();

  const std::chrono::seconds timeout_;
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  bool expired_ = false;
  std::vector<Clock::time_point> deadlines_;  // one per thread; max(): not in a call
  std::vector<ncclComm_t> comms_;
  std::thread guard_;
};

}  // namespace tessera::perf
