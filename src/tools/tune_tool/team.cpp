#include "tools/tune_tool/team.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/fd.h"
#include "base/log.h"

namespace tessera::tune {

// In memory that all processes of the team share; the barrier orders all accesses.
struct Seat::Shared {
  pthread_barrier_t barrier;
  double values[Team::kMostRanks];
  UniqueId id;
  int id_made;
  size_t results;
  double result[Team::kMostResults];
  volatile double progress;  // shown only
};

void Seat::begin_round(int round) { cores_.take(rank_, ranks_, round); }

void Seat::meet() { pthread_barrier_wait(&shared_->barrier); }

double Seat::mean(double value) {
  shared_->values[rank_] = value;
  meet();
  double sum = 0;
  for (int rank = 0; rank < ranks_; ++rank) sum += shared_->values[rank];
  meet();  // nobody writes the next value before all have read
  return sum / ranks_;
}

double Seat::of_first(double value) {
  if (rank_ == 0) shared_->values[0] = value;
  meet();
  const double first = shared_->values[0];
  meet();
  return first;
}

Result<UniqueId> Seat::new_id(const Config& config) {
  Status status;
  if (rank_ == 0) {
    Result<UniqueId> id = create_unique_id(config);
    shared_->id_made = id.ok() ? 1 : 0;
    if (id.ok()) shared_->id = id.value();
    status = id.status();
  }
  meet();
  const bool made = shared_->id_made != 0;
  const UniqueId id = shared_->id;
  meet();
  if (made) return id;
  return status.ok() ? Status(Code::kRemote, "rank 0 could not make a unique id") : status;
}

void Seat::report(double value) {
  if (rank_ == 0 && shared_->results < Team::kMostResults)
    shared_->result[shared_->results++] = value;
}

void Seat::progress(double share) {
  if (rank_ == 0) shared_->progress = share;
}

namespace {

constexpr int kBetweenLooks = 200;  // ms

void kill_all(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (pid > 0) kill(pid, SIGKILL);
  }
}

// Until all have ended, of which `end` hangs up. Returns the first that failed, or -1.
int wait_for(std::vector<pid_t>& pids, const Fd& end, const std::function<void()>& look) {
  size_t left = pids.size();
  int failed = -1;
  bool all_ended = false;
  while (left > 0) {
    int state = 0;
    const pid_t ended = waitpid(-1, &state, all_ended ? 0 : WNOHANG);
    if (ended < 0 && errno != EINTR) {  // they are not ours to wait for: who says how they ended?
      failed = 0;
      kill_all(pids);
      break;
    }
    if (ended == 0) {
      look();
      pollfd events{end.get(), 0, 0};
      all_ended = poll(&events, 1, kBetweenLooks) > 0;
      continue;
    }
    for (size_t rank = 0; rank < pids.size(); ++rank) {
      if (pids[rank] != ended) continue;
      pids[rank] = 0;
      --left;
      if (state == 0 || failed >= 0) continue;
      failed = static_cast<int>(rank);
      kill_all(pids);  // the others would wait for it
    }
  }
  return failed;
}

}  // namespace

Result<std::vector<double>> Team::run(int ranks, const std::function<Status(Seat&)>& work,
                                      const std::function<void(double)>& progress) {
  void* memory = mmap(nullptr, sizeof(Seat::Shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status::error(Code::kSystem, "shared memory for {} ranks: {}", ranks,
                         std::strerror(errno));
  const auto unmap = [](void* m) { munmap(m, sizeof(Seat::Shared)); };
  const std::unique_ptr<void, decltype(unmap)> guard(memory, unmap);
  auto* shared = new (memory) Seat::Shared{};
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(ranks));

  int ends[2];  // nobody writes: the reading end hangs up when the last rank has ended
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Status::error(Code::kSystem, "a pipe: {}", std::strerror(errno));
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  signal(SIGCHLD, SIG_DFL);  // whoever started us may have had the kernel reap children
  std::vector<pid_t> pids(static_cast<size_t>(ranks));
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    pids[rank] = fork();
    if (pids[rank] < 0) {
      kill_all(pids);
      return Status::error(Code::kSystem, "fork of rank {}: {}", rank, std::strerror(errno));
    }
    if (pids[rank] > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    Seat seat;
    seat.shared_ = shared;
    seat.rank_ = rank;
    seat.ranks_ = ranks;
    seat.begin_round(0);
    const Status status = work(seat);
    if (!status.ok()) log::warn(rank, "{}", status.message());
    _exit(status.ok() ? 0 : 1);
  }
  write_end.reset();
  const int failed = wait_for(pids, read_end, [&] { progress(shared->progress); });
  if (failed >= 0) return Status::error(Code::kRemote, "rank {} of {} failed", failed, ranks);
  return std::vector<double>(shared->result, shared->result + shared->results);
}

}  // namespace tessera::tune
