#include "comm/liveness.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"
#include "base/log.h"
#include "comm/bootstrap/agreement.h"
#include "comm/bootstrap/identity.h"

namespace tessera {
namespace {

constexpr size_t kBatch = 128;

Fd open_pidfd(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// Without a pidfd. A process that /proc hides from us lives as long as its pid is taken.
bool ended(int pid, uint64_t start_time) {
  const auto state = bootstrap::look_at_process(pid);
  if (state) return state->ended || state->start_time != start_time;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

bool stopped(int pid, uint64_t start_time) {
  const auto state = bootstrap::look_at_process(pid);
  return state && state->stopped && state->start_time == start_time;
}

}  // namespace

Result<Liveness> Liveness::watch(const std::vector<Member>& members, int own_rank) {
  if (own_rank < 0 || own_rank >= static_cast<int>(members.size())) {
    return Status::error(Code::kInternal, "liveness: rank {} is not among {} members", own_rank,
                         members.size());
  }
  const Member& self = members[static_cast<size_t>(own_rank)];
  Liveness liveness;
  std::vector<uint64_t> seen = {self.process};
  for (const Member& member : members) {
    if (std::find(seen.begin(), seen.end(), member.process) != seen.end()) continue;
    seen.push_back(member.process);
    if (member.host != self.host) continue;  // its connections tell (comm/ports.h)
    if (member.pid_namespace != self.pid_namespace) {
      log::info(own_rank,
                "rank {} (pid {} on {}) runs in another pid namespace: if it dies, only a time-out "
                "will tell",
                member.rank, member.pid, member.host_name);
      continue;
    }
    Watched watched{member.rank, member.pid, 0, open_pidfd(member.pid)};
    if (!watched.fd.valid() && ran_out(errno)) {
      return Status::error(Code::kSystem, "rank {} cannot watch rank {}: pidfd_open: {}", own_rank,
                           member.rank, error_text(errno));
    }
    // Only now that the pidfd pins the process is it worth asking whether it is the right one.
    const auto state = bootstrap::look_at_process(member.pid);
    if (state) {
      const bool same = bootstrap::process_token(member.pid, member.pid_namespace,
                                                 state->start_time) == member.process;
      if (same) watched.start_time = state->start_time;
      if (!same) watched.fd.reset();
    }
    liveness.watched_.push_back(std::move(watched));
  }
  std::sort(liveness.watched_.begin(), liveness.watched_.end(),
            [](const Watched& a, const Watched& b) { return a.rank < b.rank; });
  liveness.by_rank_.assign(members.size(), -1);
  for (const Member& member : members) {
    for (size_t i = 0; i < liveness.watched_.size(); ++i) {
      const auto lowest = static_cast<size_t>(liveness.watched_[i].rank);
      if (members[lowest].process == member.process)
        liveness.by_rank_[static_cast<size_t>(member.rank)] = static_cast<int>(i);
    }
  }
  return liveness;
}

bool Liveness::dead(int rank) const {
  const int index = by_rank_[static_cast<size_t>(rank)];
  if (index < 0) return false;
  const Watched& watched = watched_[static_cast<size_t>(index)];
  if (!watched.fd.valid()) return ended(watched.pid, watched.start_time);
  pollfd polled{watched.fd.get(), POLLIN, 0};
  while (::poll(&polled, 1, 0) < 0 && errno == EINTR) {
  }
  return polled.revents != 0;
}

template <class See>
void Liveness::look(const See& see) const {
  for (size_t first = 0; first < watched_.size(); first += kBatch) {
    const size_t count = std::min(kBatch, watched_.size() - first);
    pollfd polled[kBatch];
    for (size_t i = 0; i < count; ++i) polled[i] = {watched_[first + i].fd.get(), POLLIN, 0};
    while (::poll(polled, count, 0) < 0 && errno == EINTR) {
    }
    for (size_t i = 0; i < count; ++i) {
      const Watched& watched = watched_[first + i];
      const bool gone =
          watched.fd.valid() ? polled[i].revents != 0 : ended(watched.pid, watched.start_time);
      if (gone && !see(first + i)) return;
    }
  }
}

int Liveness::dead() const {
  int lowest = -1;
  look([&](size_t index) {
    lowest = watched_[index].rank;
    return false;
  });
  return lowest;
}

std::vector<int> Liveness::dead_among(std::span<const int> ranks) const {
  std::vector<bool> gone(watched_.size());
  bool any = false;
  look([&](size_t index) { return any = gone[index] = true; });
  std::vector<int> dead;
  if (!any) return dead;
  for (const int rank : ranks) {
    const int index = by_rank_[static_cast<size_t>(rank)];
    if (index >= 0 && gone[static_cast<size_t>(index)]) dead.push_back(rank);
  }
  return dead;
}

Status Liveness::explain(const std::string& who, const Status& overdue) const {
  const Watched* first = nullptr;
  int count = 0;
  for (const Watched& watched : watched_) {
    if (!stopped(watched.pid, watched.start_time)) continue;
    if (count++ == 0) first = &watched;
  }
  if (first == nullptr) return overdue;
  return Status::error(
      Code::kRemote,
      "{}: the process of rank {} (pid {}) is stopped{}: let it go on (kill -CONT {}, or from the "
      "debugger that holds it). What this led to: {}",
      who, first->rank, first->pid, count > 1 ? fmt::format(" ({} in all)", count) : "", first->pid,
      overdue.message());
}

std::string ended_text(std::span<const int> ranks) {
  const bool one = ranks.size() == 1;
  return fmt::format("the {} {} {} ended", one ? "process of rank" : "processes of ranks",
                     bootstrap::list_of(ranks), one ? "has" : "have");
}

}  // namespace tessera
