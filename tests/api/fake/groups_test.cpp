// Groups: collected, run together, cleaned up whatever happens.
#include "api/fake/fixture.h"

namespace tessera::fake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Groups = ApiTest;

TEST_F(Groups, EverythingRunsTogetherAtTheOutermostEnd) {
  const auto comms = make_comms(2);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comms[0], 5), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(all_reduce(comms[1], 5), ncclSuccess);
  EXPECT_THAT(world().executed(), IsEmpty());
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_THAT(world().executed(), ElementsAre(UnorderedElementsAre("r0 all-reduce 5 float32 sum",
                                                                   "r1 all-reduce 5 float32 sum")));
}

TEST_F(Groups, EndWithoutStartIsRefusedAndHarmless) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(last_error(), HasSubstr("ncclGroupEnd without ncclGroupStart"));
  EXPECT_EQ(all_reduce(make_comm()), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(1));
}

TEST_F(Groups, TheFirstErrorInsideIsTheResultAndNothingRuns) {
  const ncclComm_t comm = make_comm();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(all_reduce(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(comm, -7, 0, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("ncclAllReduce: comm is NULL"));
  EXPECT_THAT(world().executed(), IsEmpty());
}

TEST_F(Groups, AFailedGroupLeavesNoGroupOpen) {
  const ncclComm_t comm = make_comm();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(1));
}

TEST_F(Groups, AGroupBelongsToItsThread) {
  const ncclComm_t comm = make_comm();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  std::thread([&] { EXPECT_EQ(all_reduce(comm), ncclSuccess); }).join();
  EXPECT_THAT(world().executed(), SizeIs(1));
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST_F(Groups, ACommunicatorDestroyedInsideItsGroupIsNoticed) {
  const ncclComm_t comm = make_comm();
  forget(comm);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT(world().executed(), IsEmpty());
}

TEST_F(Groups, ASendToTheOwnRankNeedsItsReceive) {
  const ncclComm_t comm = make_comms(2)[1];
  EXPECT_EQ(ncclSend(buffer_, 4, ncclInt8, 1, comm, nullptr), ncclInvalidUsage);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(buffer_, 4, ncclInt8, 1, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(last_error(), HasSubstr("1 sends to the own rank but 0 receives"));
  EXPECT_THAT(world().executed(), IsEmpty());
}

TEST_F(Groups, ASendToTheOwnRankAndItsReceiveAreOfOneSize) {
  const ncclComm_t comm = make_comm();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(buffer_, 4, ncclFloat32, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRecv(buffer_, 3, ncclFloat32, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(buffer_, 4, ncclFloat32, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRecv(buffer_ + 8, 4, ncclFloat32, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_THAT(world().executed(), ElementsAre(ElementsAre("r0 send-recv 4 float32 to 0",
                                                          "r0 send-recv 4 float32 from 0")));
}

TEST_F(Groups, BlockingAndNonBlockingCommunicatorsDoNotMix) {
  const ncclComm_t blocking = make_comm();
  const ncclComm_t other = make_nonblocking();
  ASSERT_EQ(settle(other), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(blocking), ncclSuccess);
  EXPECT_EQ(all_reduce(other), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT(world().executed(), IsEmpty());
}

TEST_F(Groups, RanksInitialisedInOneGroupJoinAtTheSameTime) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  world().close_gate();
  std::thread opener([] {
    world().await_at_gate(3);
    world().open_gate();
  });
  ncclComm_t comms[3] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ncclCommInitRank(&comms[rank], 3, id, rank), ncclSuccess);
    EXPECT_EQ(comms[rank], nullptr) << "valid after the group only";
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  opener.join();
  for (int rank = 0; rank < 3; ++rank) {
    int mine = -1;
    EXPECT_EQ(ncclCommUserRank(comms[rank], &mine), ncclSuccess);
    EXPECT_EQ(mine, rank);
    EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
  }
}

TEST_F(Groups, WhenOneInitialisationFailsNoHandleIsLeft) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  world().fail_create(Status(Code::kTimeout, "rank 1 did not come"));
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&comms[0], 2, id, 0), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&comms[1], 2, id, 1), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
  EXPECT_EQ(last_error(), "rank 1 did not come");
}

TEST_F(Groups, SimulationRunsNothingAndEstimatesATime) {
  const ncclComm_t comm = make_comms(4)[0];
  ncclSimInfo_t small = NCCL_SIM_INFO_INITIALIZER;
  ncclSimInfo_t large = NCCL_SIM_INFO_INITIALIZER;
  for (auto [info, count] : {std::pair{&small, size_t{16}}, std::pair{&large, size_t{1} << 24}}) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(all_reduce(comm, count), ncclSuccess);
    ASSERT_EQ(ncclGroupSimulateEnd(info), ncclSuccess);
  }
  EXPECT_GT(small.estimatedTime, 0);
  EXPECT_GT(large.estimatedTime, 100 * small.estimatedTime);
  EXPECT_THAT(world().executed(), IsEmpty());
  EXPECT_EQ(all_reduce(comm), ncclSuccess) << "no group is open";
  EXPECT_THAT(world().executed(), SizeIs(1));
}

TEST_F(Groups, SimulationRefusesAnUninitialisedStructureAndClosesTheGroup) {
  ncclSimInfo_t info = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclSuccess);
}

TEST_F(Groups, AnErrorOfTheOperationsIsTheResultOfTheGroup) {
  const ncclComm_t comm = make_comm();
  world().fail_execute(Status(Code::kInvalidUsage, "rank 1 sends count 7, this rank expects 8"));
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(last_error(), "rank 1 sends count 7, this rank expects 8");
}

}  // namespace
}  // namespace tessera::fake
