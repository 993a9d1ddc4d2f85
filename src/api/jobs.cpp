#include "api/jobs.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "api/errors.h"

namespace tessera::api {
namespace {

bool good(const Status& status) { return status.ok() || status.code() == Code::kInProgress; }

// Positions of jobs that run one after the other.
using Chain = std::vector<size_t>;

std::vector<Chain> chains_of(const std::vector<Job>& jobs) {
  std::vector<Chain> chains;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto same = std::find_if(chains.begin(), chains.end(), [&](const Chain& chain) {
      return jobs[i].communicator != nullptr &&
             jobs[chain.front()].communicator == jobs[i].communicator;
    });
    (same != chains.end() ? *same : chains.emplace_back()).push_back(i);
  }
  return chains;
}

void run_chain(const Chain& chain, const std::vector<Job>& jobs, std::vector<Status>* outcomes) {
  // On a helper's thread nobody else would catch what is thrown.
  for (const size_t i : chain) (*outcomes)[i] = guarded(jobs[i].run);
}

}  // namespace

Status run_jobs(std::vector<Job> jobs) {
  if (jobs.empty()) return {};
  std::vector<Status> outcomes(jobs.size());
  const std::vector<Chain> chains = chains_of(jobs);
  std::vector<std::thread> threads;
  for (size_t c = 1; c < chains.size(); ++c) {
    try {
      threads.emplace_back([&, c] { run_chain(chains[c], jobs, &outcomes); });
    } catch (const std::system_error& error) {
      // These fail; the others then end at their deadlines.
      for (const size_t i : chains[c])
        outcomes[i] =
            fail(Code::kSystem, "cannot start a helper thread: {}. Check ulimit -u.", error.what());
    }
  }
  run_chain(chains[0], jobs, &outcomes);
  for (std::thread& thread : threads) thread.join();

  Status result;
  for (const Status& outcome : outcomes)
    if (good(result) && !outcome.ok() && (result.ok() || !good(outcome))) result = outcome;
  for (const Job& job : jobs)
    if (job.settle) job.settle(good(result));
  return result;
}

}  // namespace tessera::api
