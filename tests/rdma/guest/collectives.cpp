// Results of calls whose bytes travel by RDMA.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <regex>

#include "rdma/guest/hosts.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// More than any message holds, and several slices.
constexpr size_t kLarge = 100'003;

std::string sends_meet_their_receives(Communicator& comm) {
  for (const size_t count : {1, 1000, 200'001}) {
    std::vector<std::vector<int32_t>> out(comm.size()), in(comm.size());
    std::vector<Work> works;
    for (int peer = 0; peer < comm.size(); ++peer) {
      out[peer].assign(count, value(comm.rank(), peer, count));
      in[peer].assign(count, 0);
      Call call;
      call.collective = Collective::kSendRecv;
      call.type = DataType::kInt32;
      call.count = count;
      call.root = peer;
      call.send = out[peer].data();
      works.push_back({&comm, call});
      call.send = nullptr;
      call.recv = in[peer].data();
      call.receives = true;
      works.push_back({&comm, call});
    }
    const Status status = execute(works);
    if (!status.ok()) return status.message();
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (in[peer] != std::vector<int32_t>(count, value(peer, comm.rank(), count)))
        return "wrong values from rank " + std::to_string(peer);
    }
  }
  return "";
}

class Rdma : public testing::TestWithParam<int> {};

TEST_P(Rdma, EveryCollectiveGivesTheRightResult) {
  Hosts hosts(GetParam());
  hosts.check([](Communicator& comm) {
    for (const Collective collective : kData) check_sizes(comm, collective, {1, 1023, kLarge});
  });
  for (int rank = 0; rank < GetParam(); ++rank)
    EXPECT_THAT(hosts.log_of(rank), AllOf(ContainsRegex("[1-9][0-9]* messages and [1-9][0-9]* wri"),
                                          Not(HasSubstr("over tcp"))));
}

TEST_P(Rdma, SendsMeetTheirReceives) {
  Hosts hosts(GetParam());
  hosts.check([](Communicator& comm) { EXPECT_EQ(sends_meet_their_receives(comm), ""); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Rdma, testing::Values(2, 3, 4));

TEST(RdmaOfTwoRanks, TheLogNamesDeviceAndAddressesOfAConnection) {
  Hosts hosts(2);
  hosts.check([](Communicator& comm) { check(comm, {Collective::kAllReduce, -1, 1, false}); });
  EXPECT_THAT(hosts.log_of(0), ContainsRegex("ib: rank 1 .*over rxe0:1 .GID 10.7.0.1. to GID "
                                             "10.7.0.2"));
}

TEST(RdmaOfTwoRanks, StagedCallsFindTheirMemoryRegistered) {
  Hosts hosts(2);
  hosts.options.config.single_copy = false;  // staged in slices through the arenas
  hosts.check([](Communicator& comm) {
    for (int i = 0; i < 20; ++i) check(comm, {Collective::kAllReduce, -1, kLarge, false});
  });
  const std::string log = hosts.log_of(0);
  std::smatch counts;
  ASSERT_TRUE(std::regex_search(
      log, counts, std::regex("ib: (\\d+) registrations made, (\\d+) found again, 0 refused")))
      << log;
  EXPECT_LE(std::stoi(counts[1]), 10);
  EXPECT_GE(std::stoi(counts[2]), 20);
}

TEST(RdmaOfTwoRanks, SeveralQueuePairsAndDevicesShareTheBytes) {
  Hosts hosts(2);
  hosts.options.config.ib_pairs_per_connection = 2;
  hosts.adjust = [](int, CommOptions& own) { own.config.ib_hca = "rxe"; };
  hosts.check([](Communicator& comm) {
    for (const Collective collective : kData) check_sizes(comm, collective, {5, 2 * kLarge});
    EXPECT_EQ(sends_meet_their_receives(comm), "");
  });
  EXPECT_THAT(hosts.log_of(1), ContainsRegex("over rxe0:1 .*, rxe1:1 .*, rxe0:1 .*, rxe1:1 "));
}

TEST(RdmaOfTwoRanks, WhatCannotBeRegisteredTravelsInMessages) {
  Hosts hosts(2);
  hosts.adjust = [](int, CommOptions&) {
    const rlimit two_mebibytes = {2 << 20, 2 << 20};
    EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &two_mebibytes), 0);
    EXPECT_EQ(::setuid(65534), 0);  // root is above that limit
  };
  hosts.check([](Communicator& comm) {
    check_sizes(comm, Collective::kAllGather, {10, 1'000'000});
    check_sizes(comm, Collective::kAllReduce, {10, 1'000'000});
    EXPECT_EQ(sends_meet_their_receives(comm), "");
  });
  EXPECT_THAT(hosts.log_of(0), AllOf(HasSubstr("cannot be registered"), HasSubstr("over rxe0")));
}

TEST(RdmaOfThreeRanks, ARankWithoutRdmaIsReachedOverTcpAndTheOthersAreNot) {
  Hosts hosts(3);
  hosts.adjust = [](int rank, CommOptions& own) { own.config.ib_disabled = rank == 2; };
  hosts.check([](Communicator& comm) {
    for (const Collective collective : kData) check_sizes(comm, collective, {5, kLarge});
  });
  EXPECT_THAT(hosts.log_of(0), AllOf(ContainsRegex("ib: rank 1 .* over rxe0"),
                                     ContainsRegex("ib: rank 2 .* has no RDMA port")));
}

TEST(RdmaOfTwoRanks, AGidThatIsNotThereLeavesTcp) {
  Hosts hosts(2);
  hosts.options.config.ib_gid_index = 77;
  hosts.check([](Communicator& comm) { check_sizes(comm, Collective::kAllReduce, {5, kLarge}); });
  EXPECT_THAT(hosts.log_of(0), HasSubstr("no GID number 77"));
}

TEST(RdmaOfFourRanks, ChildrenConnectAnew) {
  Hosts hosts(4);
  hosts.check([](Communicator& comm) {
    Result<std::unique_ptr<Communicator>> child =
        comm.split(comm.rank() / 2, -comm.rank(), rdma_options());
    ASSERT_TRUE(child.ok()) << child.status().message();
    check_sizes(*child.value(), Collective::kAllReduce, {1, kLarge});
    EXPECT_TRUE(child.value()->finalize().ok());
  });
}

}  // namespace
}  // namespace tessera::test
