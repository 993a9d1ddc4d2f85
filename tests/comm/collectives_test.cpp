// Every collective, over rank counts, sizes around the protocol borders, and every algorithm,
// against plain loops.
#include <gtest/gtest.h>

#include "algorithms/algorithms.h"
#include "comm/checks.h"

namespace tessera::test {
namespace {

class RankCounts : public testing::TestWithParam<int> {};

TEST_P(RankCounts, EveryCollectiveGivesTheRightResultAtEverySize) {
  run_ranks(GetParam(), quick_options(), [](Communicator& comm) {
    for (const Collective collective : kData)
      check_sizes(comm, collective, {0, 1, 2, 3, 12, 13, 100, 1023, 1025, 20'011, 100'003});
  });
}

INSTANTIATE_TEST_SUITE_P(Collectives, RankCounts, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(Collectives, AgreeAtManyRanks) {
  run_ranks(33, quick_options(), [](Communicator& comm) {
    for (const Collective collective : kData) check_sizes(comm, collective, {1, 50, 3000});
  });
}

TEST(Collectives, EveryAlgorithmGivesTheRightResult) {
  for (const Collective collective : kData) {
    for (const Algorithm& algorithm : algorithms(collective)) {
      for (const int ranks : {2, 3, 6}) {
        if (!algorithm.supports(ranks)) continue;
        CommOptions options = quick_options();
        options.config.algorithm = algorithm.name;
        options.config.slice_bytes = 4096;
        run_ranks(ranks, options, [&](Communicator& comm) {
          SCOPED_TRACE(std::string(algorithm.name));
          check_sizes(comm, collective, {1, 13, 700, 9001, 30'000});
        });
      }
    }
  }
}

TEST(Collectives, RunBackToBackWithoutDisturbingEachOther) {
  run_ranks(4, quick_options(), [](Communicator& comm) {
    for (size_t round = 0; round < 300; ++round) {
      const Collective collective = kData[round * 7 % std::size(kData)];
      const size_t count = (round * round * 37) % 4000;
      check(comm, {collective, has_root(collective) ? static_cast<int>(round % 4) : -1, count,
                   round % 2 == 0});
    }
  });
}

}  // namespace
}  // namespace tessera::test
