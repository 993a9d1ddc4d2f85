#include "tools/tune_tool/team.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/log.h"
#include "tools/tune_tool/bench.h"

namespace tessera::tune {
namespace {

constexpr int kSilence = 120'000;  // ms: far more than a batch takes

constexpr std::chrono::seconds kFarewell(5);  // then a rank is stopped, or stuck
constexpr std::chrono::microseconds kLook(200);

// Runs batches until the parent closes the line. The exit status.
int serve(Seat seat, const Fd& line, const std::vector<Entrant>& entrants) {
  Bench bench(seat, entrants);
  for (;;) {
    Batch batch;
    const ssize_t got = recv(line.get(), &batch, sizeof(batch), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof(batch))) return got == 0 ? 0 : 1;
    const Result<double> time = bench.run(batch);
    if (!time.ok()) {
      log::warn(seat.rank(), "{}", time.status().message());
      return 1;
    }
    if (seat.rank() > 0) continue;
    const double answer = time.value();
    while (send(line.get(), &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
      if (errno != EINTR) return 1;
  }
}

}  // namespace

void Team::Unmap::operator()(Shared* shared) const { munmap(shared, sizeof(Shared)); }

Result<std::unique_ptr<Stopwatch>> Team::start(int ranks, const std::vector<Entrant>& entrants) {
  if (ranks < 1 || ranks > kMostRanks)
    return Status::error(Code::kInvalidArgument, "{} ranks: 1 to {}", ranks, kMostRanks);
  std::unique_ptr<Team> team(new Team);
  if (Status s = team->share(ranks); !s.ok()) return s;
  Result<std::vector<Fd>> ends = team->connect(ranks);
  if (!ends.ok()) return ends.status();
  if (Status s = team->fork_ranks(std::move(ends).value(), entrants); !s.ok()) return s;
  return std::unique_ptr<Stopwatch>(std::move(team));
}

Status Team::share(int ranks) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status::error(Code::kSystem, "shared memory for {} ranks: {}", ranks,
                         std::strerror(errno));
  shared_.reset(new (memory) Shared{});
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared_->barrier, &attributes, static_cast<unsigned>(ranks));
  pthread_barrierattr_destroy(&attributes);
  return {};
}

// Returns the ranks' ends of the lines.
Result<std::vector<Fd>> Team::connect(int ranks) {
  std::vector<Fd> ends;
  for (int rank = 0; rank < ranks; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      return Status::error(Code::kSystem, "a socket for rank {}: {}", rank, std::strerror(errno));
    lines_.emplace_back(pair[0]);
    ends.emplace_back(pair[1]);
  }
  return ends;
}

Status Team::fork_ranks(std::vector<Fd> ends, const std::vector<Entrant>& entrants) {
  signal(SIGCHLD, SIG_DFL);  // whoever started us may have had the kernel reap children
  const int ranks = static_cast<int>(ends.size());
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0)
      return Status::error(Code::kSystem, "fork of rank {}: {}", rank, std::strerror(errno));
    if (pid > 0) {
      pids_.push_back(pid);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    lines_.clear();  // or nobody would see the parent close them
    const Fd line = std::move(ends[static_cast<size_t>(rank)]);
    ends.clear();
    _exit(serve({shared_.get(), rank, ranks}, line, entrants));
  }
  return {};
}

Team::~Team() {
  // Not only closed: ranks of another team may have been forked with a copy.
  for (const Fd& line : lines_) shutdown(line.get(), SHUT_RDWR);
  const auto start = std::chrono::steady_clock::now();
  for (const pid_t pid : pids_) {
    while (pid > 0 && waitpid(pid, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() - start > kFarewell) kill(pid, SIGKILL);
      std::this_thread::sleep_for(kLook);
    }
  }
}

Result<double> Team::time(const Batch& batch) {
  if (!failure_.ok()) return failure_;
  if (Status s = ask(batch); !s.ok()) return s;
  return answer();
}

Status Team::ask(const Batch& batch) {
  for (size_t rank = 0; rank < lines_.size(); ++rank) {
    ssize_t sent = 0;
    do {
      sent = send(lines_[rank].get(), &batch, sizeof(batch), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return failed(rank);
  }
  return {};
}

Result<double> Team::answer() {
  std::vector<pollfd> events;
  for (const Fd& line : lines_) events.push_back({line.get(), POLLIN, 0});
  int ready = 0;
  do {
    ready = poll(events.data(), events.size(), kSilence);
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return fail(Status::error(Code::kSystem, "poll: {}", std::strerror(errno)));
  if (ready == 0) {
    return fail(Status::error(Code::kTimeout, "{} ranks gave no time for {} s; is one stopped?",
                              lines_.size(), kSilence / 1000));
  }
  for (size_t rank = 0; rank < events.size(); ++rank) {
    if ((events[rank].revents & (POLLHUP | POLLERR)) != 0) return failed(rank);
  }
  double answer = 0;
  const ssize_t got = recv(lines_[0].get(), &answer, sizeof(answer), 0);
  return got == static_cast<ssize_t>(sizeof(answer)) ? Result<double>(answer) : failed(0);
}

// The rank's line is closed: it has ended, or is about to.
Status Team::failed(size_t rank) {
  int state = 0;
  pid_t ended = 0;
  while ((ended = waitpid(pids_[rank], &state, 0)) < 0 && errno == EINTR) {
  }
  pids_[rank] = 0;
  const bool killed = ended > 0 && WIFSIGNALED(state);
  return fail(Status::error(Code::kRemote, "rank {} of {} failed{}", rank, lines_.size(),
                            killed ? fmt::format(": {}", strsignal(WTERMSIG(state))) : ""));
}

// The others would wait for who failed.
Status Team::fail(Status why) {
  for (const pid_t pid : pids_)
    if (pid > 0) kill(pid, SIGKILL);
  failure_ = why;
  return why;
}

}  // namespace tessera::tune
