// Calls that wait for other ranks (initialise, split, shrink, finalise, window registration) and
// may share a group: they run at the same time, so that one thread can make them for several ranks.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"

namespace tessera::api {

struct Job {
  // Jobs of one communicator run one after the other, in the order given: all ranks must meet in the
  // same one. nullptr: on its own.
  const void* communicator = nullptr;
  std::function<Status()> run;
  // Called for every job when all have run, in their order: hands the result over, or takes it
  // back. May be empty.
  std::function<void(bool all_succeeded)> settle;
};

// Runs the jobs, those of one communicator in the calling thread and a helper thread for each other;
// returns the first error in the order of the jobs. kInProgress counts as success for settle, and is
// returned if nothing failed.
Status run_jobs(std::vector<Job> jobs);

}  // namespace tessera::api
