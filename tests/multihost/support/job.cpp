#include "multihost/support/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/deadline.h"

namespace tessera::multihost {
namespace {

constexpr std::chrono::seconds kPatience{30};

void unmap(Board* board) { ::munmap(board, sizeof(Board)); }

Board* map_board() {
  void* memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Board();
}

void pause_shortly() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

// Rank 0's; for the others, what it made.
std::string agree_on_id(Board& board, int rank, const Config& config) {
  if (rank == 0) {
    const Result<UniqueId> id = create_unique_id(config);
    if (id.ok()) board.id = id.value();
    board.id_made = id.ok() ? 1 : -1;
    return id.ok() ? "" : "unique id: " + id.status().message();
  }
  const Deadline deadline = Deadline::after(kPatience);
  while (board.id_made == 0 && !deadline.passed()) pause_shortly();
  return board.id_made == 1 ? "" : "unique id: rank 0 made none";
}

// The root lives in rank 0's process: who comes late would not learn from it why there is no job.
void await_all_tries(Board& board, int ranks) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  while (board.tried < ranks && !deadline.passed()) pause_shortly();
}

std::string run_rank(Board& board, int rank, int ranks, const CommOptions& options,
                     const Job::Body& body, Job::Clock::time_point& returned) {
  std::string text = agree_on_id(board, rank, options.config);
  if (text.empty()) {
    Result<std::unique_ptr<Communicator>> comm =
        Communicator::create(board.id, ranks, rank, options);
    ++board.tried;
    if (rank == 0 && !comm.ok()) await_all_tries(board, ranks);
    text = comm.ok() ? body(*comm.value(), board) : "create: " + comm.status().message();
    returned = Job::Clock::now();  // taking leave of a dead peer is not counted
  }
  if (text.empty() && testing::Test::HasFailure()) text = "a check has failed, see above";
  return text;
}

// In the child.
[[noreturn]] void become_rank(
    const NetworkNamespace& host, const std::string& host_name, int report,
    const std::function<std::string(Job::Clock::time_point& returned)>& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Job::Clock::time_point returned = Job::Clock::now();
  std::string text;
  if (!host.enter()) {
    text = std::string("setns: ") + std::strerror(errno);
  } else {
    if (::unshare(CLONE_NEWUTS) == 0)
      static_cast<void>(::sethostname(host_name.data(), host_name.size()));
    text = run(returned);
  }
  const auto when = returned.time_since_epoch().count();
  std::string message(reinterpret_cast<const char*>(&when), sizeof when);
  message += text;
  const ssize_t written = ::write(report, message.data(), message.size());
  std::fflush(stdout);
  ::_exit(written == static_cast<ssize_t>(message.size()) ? 0 : 1);
}

}  // namespace

Job::Job(const Network& network, const std::vector<int>& host_of, const CommOptions& options,
         const Body& body)
    : Job(
          network, host_of, [&](int) { return options; }, body) {}

Job::Job(const Network& network, const std::vector<int>& host_of, const OptionsOf& options,
         const Body& body)
    : board_(map_board(), unmap), processes_(host_of.size()) {
  EXPECT_NE(board_, nullptr);
  std::fflush(stdout);
  for (int rank = 0; rank < ranks(); ++rank) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0) << std::strerror(errno);
    const int host = host_of[static_cast<size_t>(rank)];
    Process& process = processes_[static_cast<size_t>(rank)];
    process.report = Fd(ends[0]);
    const Fd report(ends[1]);
    process.pid = ::fork();
    if (process.pid != 0) continue;
    CommOptions own = options(rank);
    become_rank(network.host(host), own.name.empty() ? "host" + std::to_string(host) : own.name,
                report.get(), [&](Clock::time_point& returned) {
                  return run_rank(*board_, rank, ranks(), own, body, returned);
                });
  }
}

Job::~Job() {
  for (Process& process : processes_) {
    if (process.over || process.pid <= 0) continue;
    ::kill(process.pid, SIGKILL);
    ::waitpid(process.pid, nullptr, 0);
  }
}

bool Job::somebody_ended() const {
  for (const Process& process : processes_) {
    pollfd polled{process.report.get(), POLLIN, 0};
    if (::poll(&polled, 1, 0) > 0) return true;
  }
  return false;
}

bool Job::await_rounds(int rounds) {
  const Deadline deadline = Deadline::after(kPatience);
  const auto behind = [&] {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (board_->rounds[rank] < rounds) return true;
    }
    return false;
  };
  while (behind() && !somebody_ended()) {
    if (deadline.passed()) {
      ADD_FAILURE() << "after " << kPatience.count() << " s not all ranks have done " << rounds
                    << " rounds";
      return false;
    }
    pause_shortly();
  }
  return true;
}

void Job::send_signal(int rank, int signal) {
  Process& process = processes_[static_cast<size_t>(rank)];
  ::kill(process.pid, signal);
  process.stopped = signal == SIGSTOP;
}

std::vector<Ending> Job::endings(std::chrono::seconds at_most) {
  std::vector<Ending> endings(processes_.size());
  const Deadline deadline = Deadline::after(at_most);
  for (size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    while (!process.stopped) {
      char buffer[4096];
      const ssize_t n = ::read(process.report.get(), buffer, sizeof buffer);
      if (n > 0) process.said.append(buffer, static_cast<size_t>(n));
      if (n == 0) break;
      if (n > 0) continue;
      if (deadline.passed()) {
        endings[i].hung = true;
        break;
      }
      pollfd polled{process.report.get(), POLLIN, 0};
      ::poll(&polled, 1, deadline.left_ms());
    }
    collect(process, endings[i]);
  }
  return endings;
}

void Job::collect(Process& process, Ending& ending) {
  if (ending.hung || process.stopped) ::kill(process.pid, SIGKILL);
  int state = 0;
  ::waitpid(process.pid, &state, 0);
  process.over = true;
  ending.killed = WIFSIGNALED(state);
  Clock::rep when = 0;
  if (process.said.size() >= sizeof when) {
    std::memcpy(&when, process.said.data(), sizeof when);
    ending.text = process.said.substr(sizeof when);
    ending.after = std::chrono::duration_cast<std::chrono::milliseconds>(
        Clock::time_point(Clock::duration(when)) - mark_);
  }
}

}  // namespace tessera::multihost
