// Links that lose and delay packets: results are right all the same; a link that loses everything
// is a failure once it lasts.
#include "comm/checks.h"
#include "multihost/support/faults.h"

namespace tessera::multihost {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::quick_options;

constexpr Quality kPoor = {0.01, milliseconds(2)};
constexpr Quality kAwful = {0.04, milliseconds(5)};
constexpr Quality kDead = {1.0, {}};

class Loss : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    const std::string obstacle = LossyLink::obstacle();
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }

  // All cables.
  static void degrade(Network& network, const Quality& quality) {
    for (int host = 0; host < network.hosts(); ++host)
      for (int rail = 0; rail < network.rails(); ++rail) network.degrade(host, quality, rail);
  }
};

struct Lossy {
  const char* name;
  std::vector<int> host_of;
  int rails;
};

class LossyLayouts : public Loss, public testing::WithParamInterface<Lossy> {};

TEST_P(LossyLayouts, EveryCollectiveGivesTheRightResult) {
  const auto [name, host_of, rails] = GetParam();
  Network network(1 + host_of.back(), rails);
  degrade(network, kPoor);
  Job job(network, host_of, quick_options(), [](Communicator& comm, Board&) {
    for (const Collective collective : test::kData)
      test::check_sizes(comm, collective, {1, 1023, 60'007});
    return describe(comm.finalize());
  });
  expect_all_well(job, seconds(100));
  EXPECT_GT(network.lost_frames(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Hosts, LossyLayouts,
                         testing::Values(Lossy{"TwoOfOneRank", {0, 1}, 1},
                                         Lossy{"TwoOfTwoRanks", {0, 0, 1, 1}, 1},
                                         Lossy{"ThreeOfOneRank", {0, 1, 2}, 1},
                                         Lossy{"TwoOverTwoRails", {0, 1}, 2}),
                         [](const auto& info) { return std::string(info.param.name); });

// Some of the packets that start a connection or greet on it are missing, every time.
TEST_F(Loss, StartingTakesLongerAndSucceeds) {
  Network network(3, 2);
  degrade(network, kAwful);
  for (int start = 0; start < 3; ++start) {
    Job job(network, {0, 1, 1, 2}, quick_options(30'000), [](Communicator& comm, Board&) {
      test::check_sizes(comm, Collective::kAllReduce, {100});
      return describe(comm.finalize());
    });
    expect_all_well(job, seconds(40));
  }
  EXPECT_GT(network.lost_frames(), 0U);
}

class Burst : public Loss, public testing::WithParamInterface<int> {};

TEST_P(Burst, OfASecondCostsNothingButTime) {
  ASSERT_NO_FATAL_FAILURE(start({0, 1, 1}, 20'000, GetParam()));
  degrade(*network_, kPoor);
  for (int burst = 0; burst < 2; ++burst) {
    ASSERT_TRUE(goes_on(8));
    degrade(*network_, kDead);
    ::usleep(1'000'000);
    degrade(*network_, kPoor);
  }
  ASSERT_TRUE(goes_on(8));
  expect_to_end_well();
}

INSTANTIATE_TEST_SUITE_P(Rails, Burst, testing::Values(1, 2));

TEST_F(Loss, OfEverythingIsAnErrorThatNamesThePeer) {
  start({0, 1, 1}, 20'000);
  degrade(*network_, kPoor);
  ASSERT_TRUE(goes_on(8));
  degrade(*network_, kDead);
  job_->mark();
  expect_told({}, {0, 1, 2}, milliseconds(15'000));
}

TEST_F(Loss, OfEverythingOnOneRailLeavesTheOther) {
  start({0, 1}, 20'000, 2);
  degrade(*network_, kPoor);
  ASSERT_TRUE(goes_on(8));
  network_->degrade(1, kDead, 0);
  ASSERT_TRUE(goes_on());
  expect_to_end_well();
}

}  // namespace
}  // namespace tessera::multihost
