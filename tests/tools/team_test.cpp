// Processes that time calls together.
#include "tools/tune_tool/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

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

TEST(TeamOfRanks, ATeamThatTimesNothingEnds) { EXPECT_TRUE(Team::start(4, {automatic()}).ok()); }

}  // namespace
}  // namespace tessera::tune
