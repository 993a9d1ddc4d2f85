// A rank whose process is stopped, by a signal or a debugger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>

#include "comm/processes.h"
#include "comm/ranks.h"

namespace tessera::test {
namespace {

constexpr int kVictim = 2;
constexpr int kTogether = 4;

// What the ranks' processes tell each other beside the communicator.
struct Board {
  std::atomic<int> victim{0};  // its pid
  std::atomic<int> told{0};    // ranks that have seen the error
};

class Stopped : public testing::Test {
 protected:
  Stopped()
      : board_(new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Board) {}
  ~Stopped() override { munmap(board_, sizeof(Board)); }

  void stop_self() const {
    board_->victim = getpid();
    raise(SIGSTOP);
  }

  // What is wrong with how a rank was told; the last that is told lets the victim go on.
  std::string judge(const Status& status) const {
    const int victim = board_->victim;
    const std::string wanted =
        "the process of rank 2 (pid " + std::to_string(victim) + ") is stopped";
    if (++board_->told == kTogether - 1) kill(victim, SIGCONT);
    if (status.code() != Code::kRemote) return "wrong code: " + status.message();
    if (status.message().find(wanted) == std::string::npos)
      return "wrong text: " + status.message();
    return {};
  }

  static void expect_good(const std::vector<Ending>& endings) {
    for (size_t rank = 0; rank < endings.size(); ++rank)
      EXPECT_EQ(endings[rank].exit_code, 0) << "rank " << rank << ": " << endings[rank].text;
  }

  Board* const board_;
};

class StoppedIn : public Stopped, public testing::WithParamInterface<size_t> {};

TEST_P(StoppedIn, ACollectiveIsNamedWithItsPidToAllOthersAndIsToldItselfWhenItGoesOn) {
  const size_t count = GetParam();
  expect_good(run_processes(kTogether, quick_options(1500), [&](Communicator& comm) {
    std::vector<float> in(count, 1.0F), out(count);
    for (int i = 0; i < 60; ++i) {
      if (comm.rank() == kVictim && i == 40) stop_self();
      const Status status = run(comm, all_reduce(in.data(), out.data(), count));
      if (status.ok()) continue;
      if (comm.rank() != kVictim) return judge(status);
      return status.code() == Code::kRemote ? std::string() : "victim: " + status.message();
    }
    return std::string("no error was reported");
  }));
}

TEST_P(StoppedIn, TheMiddleOfACollectiveIsNamed) {
  const size_t count = GetParam();
  expect_good(run_processes(kTogether, quick_options(1500), [&](Communicator& comm) {
    std::vector<float> in(count, 1.0F), out(count);
    if (comm.rank() == kVictim) board_->victim = getpid();
    for (int i = 0;; ++i) {
      // The others are in that call, or on their way to it.
      if (comm.rank() == 0 && i == 40) kill(board_->victim, SIGSTOP);
      const Status status = run(comm, all_reduce(in.data(), out.data(), count));
      if (status.ok()) continue;
      return comm.rank() == kVictim ? std::string() : judge(status);
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(EagerAndBulk, StoppedIn, testing::Values(4, size_t{1} << 18));

TEST_F(Stopped, InASetUpCallARankIsNamed) {
  expect_good(run_processes(kTogether, quick_options(1500), [&](Communicator& comm) {
    if (comm.rank() == kVictim) {
      stop_self();
      return std::string();
    }
    return judge(comm.split(0, 0, comm.options()).status());
  }));
}

TEST_F(Stopped, AReceiveFromARankIsNamed) {
  expect_good(run_processes(kTogether, quick_options(1500), [&](Communicator& comm) {
    if (comm.rank() == kVictim) {
      stop_self();
      return std::string();
    }
    float value = 0;
    Call call = all_reduce(nullptr, &value, 1);
    call.collective = Collective::kSendRecv;
    call.root = kVictim;
    call.receives = true;
    return judge(run(comm, call));
  }));
}

// It has joined, and hands out no segment if it is the first, or sends no greeting.
TEST_F(Stopped, WhileACommunicatorIsFormedARankIsNamed) {
  const CommOptions options = quick_options(1500);
  expect_good(run_children(kTogether, options.config, [&](int rank, const UniqueId& id) {
    if (rank == kVictim) {
      const Result<Membership> joined =
          join(id, {rank, kTogether, options.config}, Deadline::after(std::chrono::seconds(20)));
      if (!joined.ok()) return joined.status().message();
      stop_self();
      return std::string();
    }
    return judge(Communicator::create(id, kTogether, rank, options).status());
  }));
}

}  // namespace
}  // namespace tessera::test
