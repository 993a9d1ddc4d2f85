#include "api/cliques.h"

#include <new>
#include <unordered_map>

#include "api/jobs.h"
#include "base/hash.h"

namespace tessera::api {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::weak_ptr<Clique>> cliques;
};

// Never destroyed: communicators may be in use while the process ends.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

std::shared_ptr<Clique> Clique::find_or_make(uint64_t key) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.cliques, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Clique>& place = all.cliques[key];
  std::shared_ptr<Clique> clique = place.lock();
  if (clique == nullptr) {
    clique = std::make_shared<Clique>(key);
    place = clique;
  }
  return clique;
}

void Clique::join() {
  const std::lock_guard lock(mutex_);
  ++members_;
}

void Clique::leave(bool finalized) {
  std::vector<std::shared_ptr<Communicator>> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (!finalized) --members_;
  // The others cannot finalise together any more; what waited for this rank is let go.
  if (members_ == 0) dropped.swap(finalized_);
}

Status Clique::finalize(std::shared_ptr<Communicator> comm) {
  std::vector<std::shared_ptr<Communicator>> all;
  {
    const std::lock_guard lock(mutex_);
    finalized_.push_back(std::move(comm));
    if (--members_ > 0) return {};
    all.swap(finalized_);
  }
  std::vector<Job> jobs;
  for (const std::shared_ptr<Communicator>& one : all)
    jobs.push_back({nullptr, [one] { return one->finalize(); }, nullptr});
  return run_jobs(std::move(jobs));
}

uint64_t mix(uint64_t seed, const void* data, size_t bytes) {
  return Hash().number(seed).bytes(data, bytes).value();
}

void forget_cliques_after_fork() {
  new (&registry().mutex) std::mutex;
  new (&registry().cliques) decltype(Registry::cliques);
}

}  // namespace tessera::api
