// Random collectives while links come and go and ranks are killed: nothing wrong is delivered,
// nothing hangs, nothing leaks. Goes on for TESSERA_ENDURANCE_SECONDS (5):
//
//   TESSERA_ENDURANCE_SECONDS=600 multihost_tests --gtest_filter='Endurance.*'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/deadline.h"
#include "multihost/support/fixture.h"

namespace tessera::multihost {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMayGrow = 48 << 20;  // bytes; buffers of calls come and go
constexpr size_t kMayReturn = 16;      // sockets of rails that were lost, and of their greetings

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

size_t private_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0, shared = 0;
  file >> total >> resident >> shared;
  return (resident - shared) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// A lap: traffic on all ranks, then on a child of half of them, which is destroyed again.
std::string lap(Communicator& comm, Board& board, uint32_t seed) {
  Traffic traffic;
  traffic.rounds = 48;
  traffic.seed = seed;
  std::string end = run_traffic(comm, board, traffic);
  if (!end.empty()) return end;
  Result<std::unique_ptr<Communicator>> half = comm.split(comm.rank() % 2, 0, comm.options());
  if (!half.ok()) return "split: " + describe(half.status());
  traffic.rounds = 8;
  end = run_traffic(*half.value(), board, traffic);
  if (!end.empty()) return end;
  return describe(half.value()->finalize());
}

std::string laps(Communicator& comm, Board& board, uint32_t seed) {
  constexpr int kWarm = 3;
  size_t descriptors = 0, bytes = 0;
  for (int number = 0;; ++number) {
    const std::string end = lap(comm, board, seed + static_cast<uint32_t>(number));
    if (!end.empty()) return end;
    if (number == 0) descriptors = open_descriptors();
    if (number == kWarm) bytes = private_bytes();
    EXPECT_LE(open_descriptors(), descriptors + kMayReturn) << "after lap " << number;
    if (number > kWarm) {
      EXPECT_LE(private_bytes(), bytes + kMayGrow) << "after lap " << number;
    }
    const Result<bool> enough = agree_to_end(comm, board);
    if (!enough.ok()) return describe(enough.status());
    if (enough.value()) return "";
  }
}

class Endurance : public MultihostTest {
 protected:
  static constexpr int kHosts = 3;

  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  // A link goes and comes back.
  void flap(Network& network, int rails) {
    const int host = static_cast<int>(pick(kHosts)),
              rail = static_cast<int>(pick(static_cast<uint32_t>(rails)));
    const bool silently = pick(2) == 0;
    silently ? network.silence(host, rail) : network.unplug(host, rail);
    ::usleep(1000 * pick(rails > 1 ? 1500 : 400));
    silently ? network.unsilence(host, rail) : network.plug(host, rail);
    ::usleep(1000 * pick(500));
  }

  void kill_one(Job& job) {
    const int victim = static_cast<int>(pick(static_cast<uint32_t>(job.ranks())));
    job.mark();
    job.send_signal(victim, SIGKILL);
    const std::vector<Ending> endings = job.endings(seconds(40));
    for (int rank = 0; rank < job.ranks(); ++rank) {
      if (rank == victim) continue;
      const Ending& ending = endings[static_cast<size_t>(rank)];
      EXPECT_FALSE(ending.hung) << "rank " << rank;
      EXPECT_FALSE(ending.killed) << "rank " << rank;
      EXPECT_LE(ending.after, seconds(5)) << "rank " << rank << ": " << ending.text;
      EXPECT_TRUE(names_rank(ending.text, victim)) << "rank " << rank << ": " << ending.text;
    }
  }

  void one_job(Deadline deadline) {
    const int rails = 1 + static_cast<int>(pick(2));
    const uint32_t seed = pick(1'000'000);
    SCOPED_TRACE(testing::Message() << rails << " rails, seed " << seed);
    Network network(kHosts, rails);
    Job job(network, {0, 0, 1, 2}, test::quick_options(),
            [seed](Communicator& comm, Board& board) { return laps(comm, board, seed); });
    ASSERT_TRUE(job.await_rounds(8));
    const Deadline end = Deadline::after(
        std::min<std::chrono::nanoseconds>(deadline.left(), milliseconds(2000 + pick(15'000))));
    while (!end.passed()) flap(network, rails);
    if (pick(2) == 0) return kill_one(job);
    job.board().enough = 1;
    expect_all_well(job, seconds(40));
  }

  std::mt19937 random_{std::random_device{}()};
};

TEST_F(Endurance, FlapsAndKillsLeaveNothingWrongHangingOrLeaking) {
  const char* wanted = ::getenv("TESSERA_ENDURANCE_SECONDS");
  const Deadline deadline = Deadline::after(seconds(wanted != nullptr ? std::atoi(wanted) : 5));
  const size_t descriptors = open_descriptors();
  int jobs = 0;
  for (; !deadline.passed() && !HasFailure(); ++jobs) {
    one_job(deadline);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_EQ(errno, ECHILD);
  }
  RecordProperty("jobs", jobs);
}

}  // namespace
}  // namespace tessera::multihost
