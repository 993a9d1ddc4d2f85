// Processes that time calls together.
#include "tools/tune_tool/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace tessera::tune {
namespace {

using ::testing::HasSubstr;

Entrant automatic() {
  Config config;
  config.profile = "none";
  return {config, true};
}

TEST(TeamOfRanks, TimesCallsOfEveryCollectiveAndEndsWithoutALeftover) {
  {
    auto team = Team::start(3, {automatic(), automatic()});
    ASSERT_TRUE(team.ok()) << team.status().message();
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kBroadcast, Collective::kAllToAll}) {
      for (const uint32_t entrant : {0U, 1U}) {
        const auto time = team.value()->time({collective, entrant, 4096, 2, 10, 1});
        ASSERT_TRUE(time.ok()) << time.status().message();
        EXPECT_GT(time.value(), 0);
      }
    }
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a rank is left";
}

// Rank 1 begins late, for rank 0 has the core, and rank 0 ends early, for it may run ahead.
TEST(TeamOfRanks, ABatchTakesFromTheFirstRanksBeginToTheLastOnesEnd) {
  using std::chrono::milliseconds;
  Shared shared{};
  ASSERT_EQ(pthread_barrier_init(&shared.barrier, nullptr, 2), 0);
  const Seat::Clock::time_point start = Seat::Clock::now();
  double of_other = 0;
  std::thread other([&] {
    of_other = Seat(&shared, 1, 2).span(start + milliseconds(4), start + milliseconds(9));
  });
  EXPECT_DOUBLE_EQ(Seat(&shared, 0, 2).span(start, start + milliseconds(3)), 9000);
  other.join();
  EXPECT_DOUBLE_EQ(of_other, 9000);
  pthread_barrier_destroy(&shared.barrier);
}

TEST(TeamOfRanks, ARankThatFailsEndsItsTeamWithAnError) {
  Entrant impossible = automatic();
  impossible.config.algorithm = "no-such-algorithm";
  auto team = Team::start(2, {impossible});
  ASSERT_TRUE(team.ok());
  for (int again = 0; again < 2; ++again) {
    const auto time = team.value()->time({Collective::kAllReduce, 0, 64, 0, 1, 0});
    ASSERT_FALSE(time.ok());
    EXPECT_THAT(time.status().message(), HasSubstr("of 2 failed"));
  }
}

// The processes that this one has started and not waited for.
std::vector<pid_t> children() {
  std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

TEST(TeamOfRanks, ARankThatIsKilledIsNamedWithTheSignal) {
  for (const bool meanwhile : {false, true}) {
    auto team = Team::start(3, {automatic()});
    ASSERT_TRUE(team.ok());
    const std::vector<pid_t> ranks = children();
    if (ranks.size() != 3) GTEST_SKIP() << "the kernel does not list children";
    ASSERT_TRUE(team.value()->time({Collective::kAllReduce, 0, 64, 0, 10, 0}).ok());
    const auto kill_later = [&] {
      if (meanwhile) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(ranks[1], SIGKILL);
    };
    std::thread killer;
    if (meanwhile)
      killer = std::thread(kill_later);
    else
      kill_later();
    Result<double> time = 0.0;
    for (int i = 0; i < 100 && time.ok(); ++i)
      time = team.value()->time({Collective::kAllReduce, 0, 64, 0, 100'000, 0});
    if (meanwhile) killer.join();
    ASSERT_FALSE(time.ok());
    EXPECT_THAT(time.status().message(), HasSubstr("rank 1 of 3 failed: Killed"));
  }
}

TEST(TeamOfRanks, TwoTeamsEndInAnyOrder) {
  auto first = Team::start(2, {automatic()});
  auto second = Team::start(2, {automatic()});
  ASSERT_TRUE(first.ok() && second.ok());
  first.value().reset();
  EXPECT_TRUE(second.value()->time({Collective::kAllReduce, 0, 64, 0, 1, 0}).ok());
}

TEST(TeamOfRanks, MoreRanksThanATeamCanHaveAreRefused) {
  EXPECT_FALSE(Team::start(Team::kMostRanks + 1, {automatic()}).ok());
}

TEST(TeamOfRanks, ATeamThatTimesNothingEnds) { EXPECT_TRUE(Team::start(4, {automatic()}).ok()); }

}  // namespace
}  // namespace tessera::tune
