// Ranks that are killed while their communicator is being formed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <string>
#include <string_view>

#include "comm/bootstrap/identity.h"
#include "comm/hand_over.h"
#include "comm/host_communicator.h"
#include "comm/processes.h"
#include "comm/ranks.h"
#include "transports/shm/segment.h"

namespace tessera::test {
namespace {

constexpr int kForming = 5;
using Seconds = std::chrono::seconds;

// What the victim does before it is killed.
using LastActs = std::function<void(const UniqueId&, const JoinOptions&)>;

Membership joined(const UniqueId& id, const JoinOptions& options) {
  Result<Membership> membership = join(id, options, Deadline::after(Seconds(20)));
  if (!membership.ok()) _exit(2);
  return std::move(membership).value();
}

struct Told {
  Code code = Code::kOk;
  std::string words;  // somewhere in the text
};

// Others may have ended by then, for the same reason: "the processes of ranks 0, 4 have ended".
bool says(const std::string& text, const std::string& words) {
  constexpr std::string_view kOne = "process of rank ";
  if (text.find(words) != std::string::npos) return true;
  if (!words.starts_with(kOne)) return false;
  return std::regex_search(
      text, std::regex("processes of ranks ([0-9]+, )*" + words.substr(kOne.size()) + "\\b"));
}

// All ranks but the victim must be told so; ranks of other hosts than the victim's by `elsewhere`.
void expect_named(int victim, const CommOptions& options, const Told& here, const LastActs& acts,
                  const std::vector<int>& hosts = {}, const Told& elsewhere = {}) {
  const auto body = [&](int rank, const UniqueId& id) -> std::string {
    CommOptions own = options;
    if (!hosts.empty()) own.config.host_id = "host " + std::to_string(hosts[rank]);
    if (rank == victim) {
      acts(id, {rank, kForming, own.config});
      raise(SIGKILL);
    }
    const Status status = Communicator::create(id, kForming, rank, own).status();
    const Told& told = hosts.empty() || hosts[rank] == hosts[victim] ? here : elsewhere;
    if (status.code() != told.code) return "wrong code: " + status.message();
    if (!says(status.message(), told.words)) return "wrong text: " + status.message();
    return {};
  };
  const std::vector<Ending> endings = run_children(kForming, options.config, body);
  for (int rank = 0; rank < kForming; ++rank) {
    if (rank == victim) {
      EXPECT_TRUE(endings[rank].killed);
    } else {
      EXPECT_EQ(endings[rank].exit_code, 0) << "rank " << rank << ": " << endings[rank].text;
    }
  }
}

class Killed : public testing::TestWithParam<int> {
 protected:
  std::string number() const { return std::to_string(GetParam()); }
};

void only_join(const UniqueId& id, const JoinOptions& options) { joined(id, options); }

TEST_P(Killed, BeforeItHasSaidWhoItIsItIsMissedAtTheDeadline) {
  expect_named(GetParam(), quick_options(1500),
               {Code::kTimeout, "rank " + number() + " of 5 has not joined"},
               [](const auto&...) {});
}

TEST_P(Killed, AfterAllHaveJoinedItIsNamedBeforeTheDeadline) {
  expect_named(GetParam(), quick_options(60'000), {Code::kRemote, "process of rank " + number()},
               only_join);
}

INSTANTIATE_TEST_SUITE_P(Victims, Killed, testing::Values(0, 2, kForming - 1));

TEST(Forming, AFirstRankThatIsKilledBetweenHandingOutTheSegmentToOneAndTheNextIsNamed) {
  expect_named(0, quick_options(60'000), {Code::kRemote, "process of rank 0"},
               [](const UniqueId& id, const JoinOptions& options) {
                 const Membership membership = joined(id, options);
                 const Result<Fd> segment =
                     shm::create(SegmentView::bytes(kForming, arena_bytes(kForming)));
                 EXPECT_TRUE(membership.mailbox
                                 ->send(membership.members[1].socket_name, segment.value().get(),
                                        kSegmentTag, Deadline::after(Seconds(20)))
                                 .ok());
               });
}

TEST(Forming, ARankOfAnotherHostThatIsKilledIsNamed) {
  expect_named(4, quick_options(60'000), {}, only_join, {0, 0, 0, 0, 1}, {Code::kRemote, "rank 4"});
}

TEST(Forming, ARankOfAnotherHostThatIsKilledBeforeItDialsIsNamedAtTheDeadline) {
  expect_named(0, quick_options(1500), {}, only_join, {1, 0, 0, 0, 0},
               {Code::kTimeout, "rank 0 (host "});
}

// Its neighbours see it end; another host misses it, and perhaps them, who have given up.
TEST(Forming, ARankThatIsKilledWhileHostsConnectIsNamedToItsNeighboursBeforeTheDeadline) {
  for (const int victim : {0, 2}) {
    const std::string number = std::to_string(victim);
    expect_named(victim, quick_options(3000), {Code::kRemote, "process of rank " + number},
                 only_join, {0, 0, 0, 0, 1}, {Code::kTimeout, number});
  }
}

// How a rank leaves that agreed to a split, but connects with nobody.
class LeavesASplit : public testing::TestWithParam<bool> {};

TEST_P(LeavesASplit, AndTheOtherHostsLearnOfItThroughTheOldCommunicator) {
  const bool killed = GetParam();
  constexpr int kHost[] = {0, 1, 2, 2};
  const auto leave = [&](Communicator& comm) -> std::string {
    auto& own = static_cast<HostCommunicator&>(comm);
    struct Nothing {
      char bytes[64];
    };
    const Deadline until = Deadline::after(Seconds(20));
    for (const SetupCall call : {SetupCall::kSplit, SetupCall::kForm}) {
      const Status said =
          own.exchange().all_gather(own.everyone(), Nothing{}, call, until).status();
      if (!said.ok()) return said.message();
    }
    if (killed) raise(SIGKILL);
    return {};
  };
  const auto body = [&](Communicator& comm) -> std::string {
    if (comm.rank() == 0) return leave(comm);
    const Status status = comm.split(0, 0, comm.options()).status();
    if (status.code() != Code::kRemote) return "wrong code: " + status.message();
    return says(status.message(), "rank 0") ? "" : "wrong text: " + status.message();
  };
  const std::vector<Ending> endings =
      run_processes(4, quick_options(60'000), body, [&](int rank, CommOptions& own) {
        own.config.host_id = "host " + std::to_string(kHost[rank]);
      });
  EXPECT_EQ(endings[0].killed, killed);
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(endings[rank].text, "") << "rank " << rank;
}

INSTANTIATE_TEST_SUITE_P(DestroysOrIsKilled, LeavesASplit, testing::Bool());

// Its process lives on, and what it was to send never comes.
TEST(Forming, ANeighbourThatHasFailedIsHeardWhileItsDescriptorIsAwaited) {
  Core core;
  core.ranks = 2;
  core.members = {bootstrap::describe_self(0), bootstrap::describe_self(1)};
  core.mailbox = std::move(FdMailbox::create()).value();
  core.mailbox->set_secret({}, core.rank);
  core.segment =
      shm::attach(shm::create(SegmentView::bytes(core.ranks, arena_bytes(core.ranks))).value())
          .value();
  core.view = SegmentView(core.segment->base(), core.ranks, arena_bytes(core.ranks));
  const auto watch = [&](int rank) { return Liveness::watch(core.members, rank).value(); };
  Health neighbour(core.view, 1, core.ranks, "", watch(1), nullptr);
  static_cast<void>(neighbour.raise(Status::error(Code::kSystem, "no interface is left")));

  const Liveness liveness = watch(0);
  HandOver hand_over(core, liveness, Deadline::after(Seconds(20)));
  const Status status = hand_over.receive(1, kPokeTag).status();
  EXPECT_EQ(status.code(), Code::kSystem);
  EXPECT_THAT(status.message(), testing::HasSubstr("no interface is left"));
}

}  // namespace
}  // namespace tessera::test
