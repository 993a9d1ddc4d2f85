#include "tools/tune_tool/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tessera::tune {
namespace {

std::vector<int> places(int ranks, int cores, int round) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank)
    result.push_back(Cores::place(rank, ranks, cores, round));
  return result;
}

TEST(CoresOfATeam, EachRankHasItsOwnWhereThereAreEnough) {
  for (int round = 0; round < 4; ++round)
    EXPECT_EQ(places(3, 4, round), (std::vector<int>{0, 1, 2}));
}

TEST(CoresOfATeam, NoneHasTwoRanksMoreThanAnother) {
  for (int cores = 1; cores <= 8; ++cores) {
    for (int ranks = 1; ranks <= 24; ++ranks) {
      for (int round = 0; round < 4; ++round) {
        const std::vector<int> all = places(ranks, cores, round);
        int least = ranks, most = 0;
        for (int core = 0; core < std::min(cores, ranks); ++core) {
          const auto here = static_cast<int>(std::count(all.begin(), all.end(), core));
          least = std::min(least, here);
          most = std::max(most, here);
        }
        EXPECT_LE(most - least, 1) << ranks << " ranks, " << cores << " cores, round " << round;
      }
    }
  }
}

TEST(CoresOfATeam, EachOfFourRanksSitsBesideEachOtherOnceInThreeRounds) {
  std::set<int> neighbours_of_first;
  for (int round = 0; round < 3; ++round) {
    const std::vector<int> all = places(4, 2, round);
    for (int rank = 1; rank < 4; ++rank)
      if (all[static_cast<size_t>(rank)] == all[0]) neighbours_of_first.insert(rank);
  }
  EXPECT_EQ(neighbours_of_first, (std::set<int>{1, 2, 3}));
}

}  // namespace
}  // namespace tessera::tune
