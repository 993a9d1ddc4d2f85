// The ranks of this process: communicators, buffers and registrations, from start to end.
//
// Thread safety: a rank belongs to the thread that drives it; thread t drives ranks [t * gpus, (t +
// 1) * gpus) of the process.
#pragma once

#include <nccl.h>

#include <memory>
#include <span>
#include <vector>

#include "common/buffer.h"
#include "common/collective.h"
#include "common/options.h"
#include "common/team.h"
#include "common/watchdog.h"
#include "common/world.h"

namespace tessera::perf {

struct RankState {
  int rank = 0;  // in the communicator
  ncclComm_t comm = nullptr;
  Buffer send;
  Buffer recv;
  void* handles[2] = {};         // -R 1
  ncclWindow_t windows[2] = {};  // -R 2
};

class Session {
 public:
  // buffer_bytes: data bytes of every buffer. Ends the program if a call fails.
  Session(const Options& options, World& world, size_t buffer_bytes);

  // Creates the ranks. Without -p the main thread does it for all in one group; with it each thread
  // for its own.
  void start();
  void finish();

  int ranks() const { return ranks_; }  // of the communicator
  std::span<RankState> of_thread(int thread);
  size_t buffer_bytes() const { return buffer_bytes_; }
  const Options& options() const { return options_; }
  Team& team() { return team_; }
  Watchdog& watchdog() { return watchdog_; }

  // Runs `body` in every thread of the process; thread 0 is the caller.
  void in_threads(const std::function<void(int thread)>& body);

 private:
  void create(std::span<RankState> states, const ncclUniqueId& id);
  void allocate(std::span<RankState> states);
  void register_buffers(std::span<RankState> states);
  void deregister_buffers(std::span<RankState> states);

  const Options& options_;
  World& world_;
  Team team_;
  Watchdog watchdog_;
  size_t buffer_bytes_;
  int ranks_;
  std::vector<RankState> states_;
};

}  // namespace tessera::perf
