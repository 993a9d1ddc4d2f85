// Rendezvous that succeed.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include <set>

#include "base/log.h"
#include "bootstrap/rendezvous.h"
#include "comm/late.h"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;

// Failures are expected here; their warnings are not worth printing.
class Quiet : public ::testing::Environment {
  void SetUp() override { log::configure(log::Level::kNone, ""); }
};
[[maybe_unused]] const auto* const kQuiet = ::testing::AddGlobalTestEnvironment(new Quiet);

class Join : public ::testing::TestWithParam<int> {};

TEST_P(Join, EveryRankLearnsAllMembersAndOneSecret) {
  const int ranks = GetParam();
  const auto results = join_all(new_id(), ranks_of(ranks));
  expect_all_joined(results);
  std::set<std::string> sockets;
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok());
    const Membership& membership = result.value();
    EXPECT_EQ(membership.secret, results[0].value().secret);
    ASSERT_EQ(membership.members.size(), static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const Member& member = membership.members[static_cast<size_t>(rank)];
      EXPECT_EQ(member.rank, rank);
      EXPECT_EQ(member.pid, ::getpid());
      EXPECT_EQ(member.host, bootstrap::describe_self(0).host);
      EXPECT_EQ(member.process, membership.members[0].process);
      EXPECT_EQ(member.socket_name, results[static_cast<size_t>(rank)].value().mailbox->name());
      sockets.insert(member.socket_name);
    }
  }
  EXPECT_EQ(sockets.size(), static_cast<size_t>(ranks));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Join, ::testing::Values(1, 2, 3, 5, 8, 17, 64));

TEST(JoinOnce, TheSecretOfACommunicatorIsFresh) {
  const UniqueId first = new_id();
  const auto a = join_all(first, ranks_of(1));
  const auto b = join_all(new_id(), ranks_of(1));
  ASSERT_TRUE(a[0].ok() && b[0].ok());
  EXPECT_NE(a[0].value().secret, b[0].value().secret);
  EXPECT_NE(a[0].value().secret, content_of(first).secret);
}

TEST(JoinOnce, SeveralRendezvousAtTheSameTimeDoNotMix) {
  constexpr int kRendezvous = 8;
  std::vector<std::thread> threads;
  std::vector<std::vector<Result<Membership>>> results(kRendezvous);
  for (size_t i = 0; i < kRendezvous; ++i) {
    threads.emplace_back([&, i] { results[i] = join_all(new_id(), ranks_of(4)); });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::array<uint8_t, 16>> secrets;
  for (const auto& of_one : results) {
    expect_all_joined(of_one);
    for (const auto& result : of_one) secrets.insert(result.value().secret);
  }
  EXPECT_EQ(secrets.size(), static_cast<size_t>(kRendezvous));
}

TEST(JoinOnce, NoDescriptorIsLeftBehind) {
  const size_t before = open_descriptors();
  for (int i = 0; i < 5; ++i) expect_all_joined(join_all(new_id(), ranks_of(6)));
  EXPECT_TRUE(descriptors_return_to(before));
}

TEST(JoinOnce, RanksMayBeProcesses) {
  constexpr int kRanks = 6;
  test::Late<UniqueId> given;
  std::vector<pid_t> children;
  for (int rank = 1; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const UniqueId id = given.take().value_or(UniqueId{});
      const Result<Membership> result = join(id, {rank, kRanks, {}}, soon());
      const bool good =
          result.ok() && result.value().members[static_cast<size_t>(rank)].pid == ::getpid();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  const UniqueId id = new_id();
  given.give(id, kRanks - 1);
  const Result<Membership> result = join(id, {0, kRanks, {}}, soon());
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ASSERT_TRUE(result.ok()) << result.status().message();
  std::set<uint64_t> processes;
  for (const Member& member : result.value().members) {
    processes.insert(member.process);
    EXPECT_EQ(member.host, result.value().members[0].host);
  }
  EXPECT_EQ(processes.size(), static_cast<size_t>(kRanks));
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(result.value().members[static_cast<size_t>(rank)].pid,
              children[static_cast<size_t>(rank - 1)]);
  }
}

// A port nobody uses now.
uint16_t free_port(int family) {
  const auto address = family == AF_INET
                           ? bootstrap::make_address(in_addr{htonl(INADDR_LOOPBACK)}, 0)
                           : bootstrap::make_address(in6addr_loopback, 0, 0);
  const auto listener = bootstrap::listen_at(address);
  if (!listener.ok()) return 0;
  const auto* in = reinterpret_cast<const sockaddr_in*>(&listener.value().address.storage);
  return ntohs(in->sin_port);  // at the same place in both families
}

TEST(JoinByCommId, RankZeroHostsTheRootWheneverItComes) {
  Config config;
  config.comm_id = fmt::format("127.0.0.1:{}", free_port(AF_INET));
  const UniqueId id = new_id(config);
  std::vector<JoinOptions> options = ranks_of(4, config);
  std::reverse(options.begin(), options.end());
  expect_all_joined(join_all(id, options));
}

TEST(JoinByCommId, EveryProcessMayMakeTheIdAndTheAddressServesAgain) {
  Config config;
  config.comm_id = fmt::format("localhost:{}", free_port(AF_INET));
  EXPECT_EQ(new_id(config), new_id(config));
  for (int i = 0; i < 5; ++i) expect_all_joined(join_all(new_id(config), ranks_of(3, config)));
}

TEST(JoinByCommId, TakesIpv6InBrackets) {
  const uint16_t port = free_port(AF_INET6);
  if (port == 0) GTEST_SKIP() << "no IPv6 here";
  Config config;
  config.comm_id = fmt::format("[::1]:{}", port);
  expect_all_joined(join_all(new_id(config), ranks_of(3, config)));
}

TEST(JoinByCommId, WithoutRankZeroTheOthersNameItAtTheDeadline) {
  Config config;
  config.comm_id = fmt::format("127.0.0.1:{}", free_port(AF_INET));
  const auto result =
      join(new_id(config), {1, 2, config}, Deadline::after(std::chrono::milliseconds(200)));
  EXPECT_EQ(result.status().code(), Code::kTimeout);
  EXPECT_THAT(result.status().message(), HasSubstr("rank 0 did not open"));
  EXPECT_THAT(result.status().message(), HasSubstr(config.comm_id));
}

TEST(JoinByCommId, AnAddressOfAnotherHostIsRefusedAtRankZero) {
  Config config;
  config.comm_id = "192.0.2.1:4711";  // reserved for documentation
  const auto result = join(new_id(config), {0, 1, config}, soon());
  EXPECT_EQ(result.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(result.status().message(), HasSubstr("192.0.2.1:4711"));
}

TEST(JoinByInterface, TheNamedInterfaceIsUsed) {
  Config config;
  config.socket_ifname = "=lo";
  expect_all_joined(join_all(new_id(config), ranks_of(2, config)));
}

}  // namespace
}  // namespace tessera::testing
