// Ranks, hosts and links that fail under random traffic. Every case ends well, or with an error that
// names who is missing, in bounded time.
#include "multihost/support/faults.h"

#include <signal.h>
#include <unistd.h>

namespace tessera::multihost {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::quick_options;
using ::testing::HasSubstr;

struct Victim {
  std::vector<int> host_of;
  int rank;
};

class KilledRank : public Faults, public testing::WithParamInterface<Victim> {};

TEST_P(KilledRank, IsNamedToAllOthersWithinTwoSeconds) {
  const auto [host_of, victim] = GetParam();
  ASSERT_NO_FATAL_FAILURE(start(host_of, 20'000));
  job_->send_signal(victim, SIGKILL);
  expect_told({victim}, {victim}, milliseconds(2000));
  for (int rank = 0; rank < job_->ranks(); ++rank) {
    if (rank == victim) continue;
    EXPECT_THAT(endings_[rank].text, HasSubstr(to_string(Code::kRemote)));
  }
}

INSTANTIATE_TEST_SUITE_P(Victims, KilledRank,
                         testing::Values(Victim{{0, 1}, 0}, Victim{{0, 0, 1, 1}, 0},
                                         Victim{{0, 0, 1, 1}, 3}, Victim{{0, 1, 2}, 1},
                                         Victim{{0, 1, 2, 3, 0, 1}, 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.rank) + "Of" +
                                  std::to_string(info.param.host_of.size());
                         });

TEST_F(Faults, AStoppedRankIsNamedAtTheDeadline) {
  start({0, 0, 1, 1}, 2000);
  job_->send_signal(2, SIGSTOP);
  expect_told({2}, {2}, milliseconds(5000));
}

TEST_F(Faults, SurvivorsOfAKilledRankShrinkAndGoOn) {
  network_ = std::make_unique<Network>(3);
  job_ = std::make_unique<Job>(*network_, std::vector{0, 1, 1, 2}, quick_options(),
                               [](Communicator& comm, Board& board) -> std::string {
                                 const std::string end = run_traffic(comm, board, {});
                                 if (end.find("rank 2") == std::string::npos) return end;
                                 const std::vector<int> excluded = {2};
                                 const auto rest = comm.shrink(excluded, comm.options());
                                 if (!rest.ok()) return "shrink: " + describe(rest.status());
                                 Traffic more;
                                 more.rounds = 60;
                                 return run_traffic(*rest.value(), board, more);
                               });
  ASSERT_TRUE(job_->await_rounds(kWarm));
  job_->send_signal(2, SIGKILL);
  const std::vector<Ending> endings = job_->endings(seconds(40));
  for (const int rank : {0, 1, 3}) EXPECT_EQ(endings[rank].text, "") << "rank " << rank;
}

TEST_F(Faults, AHostWithoutItsCableIsNamedAtTheDeadline) {
  start({0, 0, 1}, 3000);
  network_->unplug(1);
  expect_told({}, {0, 1, 2}, milliseconds(8000));
}

TEST_F(Faults, ALinkThatComesBackCostsNothingButTime) {
  start({0, 1, 1}, 20'000);
  for (int flap = 0; flap < 2; ++flap) {
    network_->unplug(1);
    ::usleep(300'000);
    network_->plug(1);
    ASSERT_TRUE(goes_on(8));
  }
  expect_to_end_well();
}

TEST_F(Faults, AHostThatVanishesIsNamed) {
  start({0, 1, 2, 2}, 4000);
  for (const int rank : {2, 3}) job_->send_signal(rank, SIGSTOP);
  network_->remove(2);
  expect_told({2, 3}, {2, 3}, milliseconds(9000));
}

// Its connections are half open: it has forgotten them, the others have not.
TEST_F(Faults, AHostThatStartsAgainIsNamed) {
  start({0, 1, 1}, 20'000);
  network_->silence(0);
  job_->send_signal(0, SIGKILL);
  ::usleep(500'000);
  network_->unsilence(0);
  expect_told({0}, {0}, milliseconds(6000));
}

TEST_F(Faults, AnIdleHostThatVanishesIsNamedByTheNextCall) {
  network_ = std::make_unique<Network>(2);
  job_ = std::make_unique<Job>(*network_, std::vector{0, 1}, quick_options(3000),
                               [](Communicator& comm, Board& board) {
                                 Traffic some;
                                 some.rounds = kWarm;
                                 const std::string end = run_traffic(comm, board, some);
                                 if (!end.empty()) return end;
                                 while (board.enough == 0) ::usleep(1000);
                                 return run_traffic(comm, board, {});
                               });
  ASSERT_TRUE(job_->await_rounds(kWarm));
  job_->send_signal(1, SIGSTOP);
  network_->remove(1);
  job_->mark();
  job_->board().enough = 1;
  expect_told({1}, {1}, milliseconds(8000));
}

class LostRail : public Faults, public testing::WithParamInterface<bool> {};

TEST_P(LostRail, IsDoneWithoutAndOnlyTheLossOfBothEndsTheJob) {
  const bool silently = GetParam();
  const auto lose = [&](int rail) {
    silently ? network_->silence(1, rail) : network_->unplug(1, rail);
  };
  ASSERT_NO_FATAL_FAILURE(start({0, 0, 1, 1}, 20'000, 2));
  lose(0);
  ASSERT_TRUE(goes_on());
  lose(1);
  job_->mark();
  expect_told({}, {0, 1, 2, 3}, milliseconds(15'000));
}

// Else the loss of the other would end the job. Ranks look for it every second.
TEST_P(LostRail, IsUsedAgainWhenItIsBack) {
  const bool silently = GetParam();
  ASSERT_NO_FATAL_FAILURE(start({0, 0, 1, 1}, 20'000, 2));
  silently ? network_->silence(1, 0) : network_->unplug(1, 0);
  ASSERT_TRUE(goes_on());
  silently ? network_->unsilence(1, 0) : network_->plug(1, 0);
  ::usleep(10'000'000);
  ASSERT_TRUE(goes_on());
  network_->unplug(1, 1);
  ASSERT_TRUE(goes_on());
  expect_to_end_well();
}

INSTANTIATE_TEST_SUITE_P(How, LostRail, testing::Bool(), [](const auto& info) {
  return info.param ? "Silently" : "WithItsCarrier";
});

TEST_F(Faults, ARailThatComesAndGoesIsNoFailure) {
  start({0, 1}, 20'000, 2);
  network_->unplug(0, 1);
  ASSERT_TRUE(goes_on());
  network_->plug(0, 1);
  ASSERT_TRUE(goes_on());
  expect_to_end_well();
}

// Longer than one of two rails would be waited for.
TEST_F(Faults, TheLastRailMayBeDownForAMoment) {
  start({0, 1}, 20'000, 2);
  network_->unplug(0, 1);
  ASSERT_TRUE(goes_on());
  network_->silence(0, 0);
  ::usleep(5'000'000);
  network_->unsilence(0, 0);
  ASSERT_TRUE(goes_on());
  expect_to_end_well();
}

TEST_F(Faults, ALinkThatTurnsSlowIsNoFailure) {
  start({0, 1, 1}, 20'000);
  network_->shape(1, "tbf rate 100mbit burst 64kb latency 50ms");
  ASSERT_TRUE(goes_on(12));
  expect_to_end_well();
}

// The queue holds next to nothing: most bursts lose packets.
TEST_F(Faults, ALinkThatDropsPacketsIsNoFailure) {
  start({0, 1}, 20'000);
  network_->shape(1, "tbf rate 400mbit burst 10kb limit 20kb");
  ASSERT_TRUE(goes_on(12));
  expect_to_end_well();
}

}  // namespace
}  // namespace tessera::multihost
