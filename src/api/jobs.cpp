#include "api/jobs.h"

#include <system_error>
#include <thread>

#include "api/errors.h"

namespace tessera::api {
namespace {

bool good(const Status& status) { return status.ok() || status.code() == Code::kInProgress; }

// Jobs whose thread cannot be started fail; the others then end at their deadlines.
void start(std::vector<std::thread>* threads, const Job& job, Status* status) {
  try {
    threads->emplace_back([&job, status] { *status = job.run(); });
  } catch (const std::system_error& error) {
    *status =
        fail(Code::kSystem, "cannot start a helper thread: {}. Check ulimit -u.", error.what());
  }
}

}  // namespace

Status run_jobs(std::vector<Job> jobs) {
  if (jobs.empty()) return {};
  std::vector<Status> outcomes(jobs.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < jobs.size(); ++i) start(&threads, jobs[i], &outcomes[i]);
  outcomes[0] = jobs[0].run();
  for (std::thread& thread : threads) thread.join();

  Status result;
  for (const Status& outcome : outcomes)
    if (good(result) && !outcome.ok() && (result.ok() || !good(outcome))) result = outcome;
  for (const Job& job : jobs)
    if (job.settle) job.settle(good(result));
  return result;
}

}  // namespace tessera::api
