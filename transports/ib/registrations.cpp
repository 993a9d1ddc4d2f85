#include "transports/ib/registrations.h"

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace tessera::ib {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr int kLookBack = 4;  // a miss costs a registration only

}  // namespace

Registrations::Registrations(const Verbs& verbs, std::vector<ibv_pd*> domains, int rank,
                             size_t limit)
    : verbs_(verbs), domains_(std::move(domains)), rank_(rank), limit_(limit) {}

Registrations::~Registrations() {
  for (auto at = all_.begin(); at != all_.end();) at = drop(at);
}

Registration* Registrations::find(const std::byte* at, size_t bytes, Life life) {
  auto next = all_.upper_bound(const_cast<std::byte*>(at));
  for (int i = 0; i < kLookBack && next != all_.begin(); ++i) {
    Registration& candidate = *(--next)->second;
    if (candidate.life == life && !candidate.doomed && candidate.covers(at, bytes))
      return &candidate;
  }
  return nullptr;
}

Registration* Registrations::acquire(std::byte* at, size_t bytes, Life life) {
  Registration* found = find(at, bytes, life);
  if (found != nullptr) {
    ++counts_.found;
  } else if (life == Life::kCommunicator) {
    const auto first = reinterpret_cast<uintptr_t>(at);
    const uintptr_t begin = first / kBlock * kBlock;
    const uintptr_t end = (first + bytes + kBlock - 1) / kBlock * kBlock;
    // Whole blocks, unless not all of them is memory.
    found = add(at - (first - begin), end - begin, life);
  }
  if (found == nullptr) found = add(at, bytes, life);
  if (found == nullptr) {
    refuse(bytes, std::strerror(errno));
    return nullptr;
  }
  ++found->uses;
  return found;
}

Registration* Registrations::add(std::byte* at, size_t bytes, Life life) {
  if (!make_room(bytes)) {
    errno = ENOSPC;
    return nullptr;
  }
  auto made = std::make_unique<Registration>();
  made->begin = at;
  made->bytes = bytes;
  made->life = life;
  made->doomed = life == Life::kMessages;
  for (ibv_pd* domain : domains_) {
    ibv_mr* key = verbs_.reg_mr(domain, at, bytes, kAccess);
    if (key == nullptr) {
      const int error = errno;
      for (ibv_mr* earlier : made->keys) verbs_.dereg_mr(earlier);
      errno = error;
      return nullptr;
    }
    made->keys.push_back(key);
  }
  if (life == Life::kCall) ++of_calls_;
  ++counts_.made;
  counts_.bytes += bytes;
  counts_.most_bytes = std::max(counts_.most_bytes, counts_.bytes);
  return all_.emplace(at, std::move(made))->second.get();
}

bool Registrations::make_room(size_t bytes) {
  if (bytes > limit_) return false;
  for (auto at = all_.begin(); at != all_.end() && counts_.bytes > limit_ - bytes;)
    at = at->second->uses == 0 ? drop(at) : std::next(at);
  return counts_.bytes <= limit_ - bytes;
}

Registrations::Map::iterator Registrations::drop(Map::iterator at) {
  for (ibv_mr* key : at->second->keys) verbs_.dereg_mr(key);
  if (at->second->life == Life::kCall) --of_calls_;
  counts_.bytes -= at->second->bytes;
  return all_.erase(at);
}

void Registrations::release(Registration* registration) {
  if (--registration->uses > 0 || !registration->doomed) return;
  auto [at, end] = all_.equal_range(registration->begin);
  while (at != end && at->second.get() != registration) ++at;
  if (at != end) drop(at);
}

void Registrations::end_call() {
  if (of_calls_ == 0) return;
  for (auto at = all_.begin(); at != all_.end();) {
    Registration& registration = *at->second;
    if (registration.life == Life::kCall) registration.doomed = true;
    at = registration.doomed && registration.uses == 0 ? drop(at) : std::next(at);
  }
}

void Registrations::refuse(size_t bytes, const std::string& why) {
  if (counts_.refused++ > 0) return;
  log::warn(rank_,
            "ib: {} more bytes cannot be registered with the network device ({} are): {}; they "
            "travel through message buffers, which is slower. The limit may be that of locked "
            "memory (ulimit -l)",
            bytes, counts_.bytes, why);
}

}  // namespace tessera::ib
