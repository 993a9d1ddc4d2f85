// From initialisation to the end, blocking and not.
#include <tessera/nccl_device_host.h>

#include "api/fake/fixture.h"

namespace tessera::fake {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Lifecycle = ApiTest;

TEST_F(Lifecycle, InitialisationChecksItsArguments) {
  ncclUniqueId id = {};
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("rank 2 is out of range; the ranks are 0 to 1"));
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, 0, &id, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, 3, &id, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, 1, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 2, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(&comm, -1, nullptr), ncclInvalidArgument);
}

TEST_F(Lifecycle, InitAllGivesEachRankItsDevice) {
  const int devices[] = {4, 2, 9};
  ncclComm_t comms[3];
  ASSERT_EQ(ncclCommInitAll(comms, 3, devices), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    int device = -1, mine = -1, count = 0;
    EXPECT_EQ(ncclCommCuDevice(comms[rank], &device), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(comms[rank], &mine), ncclSuccess);
    EXPECT_EQ(ncclCommCount(comms[rank], &count), ncclSuccess);
    EXPECT_EQ(device, devices[rank]);
    EXPECT_EQ(mine, rank);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
  }
  const int twice[] = {1, 1};
  EXPECT_EQ(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage);
}

TEST_F(Lifecycle, SplitChecksColoursAndPassesTheRest) {
  const ncclComm_t comm = make_comms(2)[1];
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = "tp";
  ncclComm_t child = comm;
  EXPECT_EQ(ncclCommSplit(comm, -2, 0, &child, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(comm, 0, 0, nullptr, nullptr), ncclInvalidArgument);
  child = comm;
  EXPECT_EQ(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 5, &child, nullptr), ncclSuccess);
  EXPECT_EQ(child, nullptr);
  EXPECT_EQ(ncclCommSplit(comm, 3, -5, &child, &config), ncclSuccess);
  EXPECT_THAT(world().events(), ElementsAre("r1 split -1 5 \"\"", "r1 split 3 -5 \"tp\""));
  EXPECT_EQ(all_reduce(child), ncclSuccess);
  EXPECT_EQ(ncclBcast(buffer_, 1, ncclInt8, 7, child, nullptr), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("communicator \"tp\" rank 0"));
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

TEST_F(Lifecycle, ShrinkChecksItsListAndLeavesItAlone) {
  const ncclComm_t comm = make_comms(5)[2];
  ncclComm_t child = nullptr;
  const auto shrink = [&](std::vector<int> list, int flags = NCCL_SHRINK_DEFAULT) {
    return ncclCommShrink(comm, list.data(), static_cast<int>(list.size()), &child, nullptr, flags);
  };
  EXPECT_EQ(shrink({}), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(comm, nullptr, 1, &child, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(shrink({5}), ncclInvalidArgument);
  EXPECT_EQ(shrink({-1}), ncclInvalidArgument);
  EXPECT_EQ(shrink({0, 2}), ncclInvalidArgument);
  EXPECT_EQ(shrink({4, 0, 4}), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("rank 4 is listed twice"));
  EXPECT_EQ(shrink({4}, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(nullptr, nullptr, 0, &child, nullptr, NCCL_SHRINK_ABORT),
            ncclInvalidArgument);
  int list[] = {4, 0};
  EXPECT_EQ(ncclCommShrink(comm, list, 2, &child, nullptr, NCCL_SHRINK_ABORT), ncclSuccess);
  EXPECT_THAT(list, ElementsAre(4, 0));
  EXPECT_THAT(world().events(), ElementsAre("r2 revoke", "r2 shrink 0,4"));
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

TEST_F(Lifecycle, RanksOfOneThreadFinaliseOneAfterTheOtherAndTogether) {
  const auto comms = make_comms(3);
  EXPECT_EQ(ncclCommFinalize(comms[0]), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comms[1]), ncclSuccess);
  forget(comms[1]);
  EXPECT_EQ(ncclCommDestroy(comms[1]), ncclSuccess);
  EXPECT_THAT(world().events(), IsEmpty());
  EXPECT_EQ(ncclCommFinalize(comms[2]), ncclSuccess);
  EXPECT_THAT(world().events(),
              ::testing::IsSupersetOf({"r0 finalize", "r1 finalize", "r2 finalize"}));
}

TEST_F(Lifecycle, NothingButDestroyFollowsFinalize) {
  const ncclComm_t comm = make_comm();
  EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument);
  EXPECT_EQ(all_reduce(comm), ncclInvalidUsage);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
  forget(comm);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(Lifecycle, ARevokedCommunicatorMayStillBeSplitShrunkAndDestroyed) {
  const ncclComm_t comm = make_comms(2)[0];
  forget(comm);
  EXPECT_EQ(ncclCommRevoke(comm, 1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
  EXPECT_EQ(all_reduce(comm), ncclInvalidUsage);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidUsage);
  ncclComm_t child = nullptr;
  int other = 1;
  EXPECT_EQ(ncclCommShrink(comm, &other, 1, &child, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(Lifecycle, RevokeFromAnotherThreadEndsACallInProgress) {
  const ncclComm_t comm = make_comm();
  world().close_gate();
  ncclResult_t result = ncclSuccess;
  std::thread caller([&] { result = all_reduce(comm); });
  world().await_at_gate(1);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
  caller.join();
  EXPECT_EQ(result, ncclRemoteError);
  EXPECT_EQ(all_reduce(comm), ncclInvalidUsage);
}

TEST_F(Lifecycle, DestroyFreesTheCommunicator) {
  const ncclComm_t comm = make_comm();
  forget(comm);
  EXPECT_THAT(world().events(), Not(Contains("r0 gone")));
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_THAT(world().events(), ElementsAre("r0 gone"));
}

using NonBlocking = ApiTest;

TEST_F(NonBlocking, InitialisationGoesOnInTheBackground) {
  world().close_gate();
  const ncclComm_t comm = make_nonblocking();
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);
  int count = 0;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
  EXPECT_EQ(all_reduce(comm), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("still being initialised"));
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
  world().open_gate();
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
}

TEST_F(NonBlocking, AFailedInitialisationIsTheStateAndTheResultOfEveryCall) {
  world().fail_create(Status(Code::kInvalidUsage, "rank 1 says 3 ranks, this rank 2"));
  const ncclComm_t comm = make_nonblocking();
  EXPECT_EQ(settle(comm), ncclInvalidUsage);
  EXPECT_EQ(all_reduce(comm), ncclInvalidUsage);
  EXPECT_EQ(last_error(), "rank 1 says 3 ranks, this rank 2");
  forget(comm);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(NonBlocking, AbortDuringInitialisationReturnsAtOnceAndLeavesNothing) {
  world().close_gate();
  const ncclComm_t comm = make_nonblocking();
  world().await_at_gate(1);
  forget(comm);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  ncclResult_t state;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
  world().open_gate();
  for (bool gone = false; !gone; std::this_thread::yield()) {
    const auto events = world().events();
    gone = std::find(events.begin(), events.end(), "r0 gone") != events.end();
  }
  EXPECT_THAT(world().events(), ElementsAre("r0 abort", "r0 gone"));
}

TEST_F(NonBlocking, OperationsReturnInProgressAndTheStateTellsTheEnd) {
  const ncclComm_t comm = make_nonblocking();
  ASSERT_EQ(settle(comm), ncclSuccess);
  world().close_gate();
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);
  EXPECT_EQ(all_reduce(comm), ncclInvalidArgument) << "one at a time";
  world().open_gate();
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(2));
}

TEST_F(NonBlocking, AGroupReturnsInProgressAndRunsAsOne) {
  const ncclComm_t comm = make_nonblocking();
  ASSERT_EQ(settle(comm), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_THAT(world().executed(), ElementsAre(SizeIs(2)));
}

TEST_F(NonBlocking, AFailedOperationIsTheState) {
  const ncclComm_t comm = make_nonblocking();
  ASSERT_EQ(settle(comm), ncclSuccess);
  world().fail_execute(Status(Code::kTimeout, "rank 1 did not answer"));
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  EXPECT_EQ(settle(comm), ncclRemoteError);
}

TEST_F(NonBlocking, SplitAndFinalizeGoOnInTheBackground) {
  const ncclComm_t comm = make_nonblocking();
  ASSERT_EQ(settle(comm), ncclSuccess);
  ncclComm_t child = nullptr;
  EXPECT_EQ(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInProgress);
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_EQ(settle(child), ncclSuccess);
  EXPECT_EQ(all_reduce(child), ncclInProgress) << "inherits the parent's settings";
  EXPECT_EQ(settle(child), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_THAT(world().events(), ElementsAre("r0 split 0 0 \"\"", "r0 finalize"));
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

using DeviceApi = ApiTest;

TEST_F(DeviceApi, SaysThatItDoesNotExistOnHostRanks) {
  const ncclComm_t comm = make_comm();
  const ncclTeam_t team = ncclTeamWorld(comm);
  EXPECT_EQ(ncclDevCommCreate(comm, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_THAT(last_error(), HasSubstr("ncclDevCommCreate: the device API does not exist on host"));
  EXPECT_EQ(ncclDevCommDestroy(comm, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGinBarrierCreateRequirement(comm, team, 1, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclLsaBarrierCreateRequirement(team, 1, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclLLA2ACreateRequirement(1, 1, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclLLA2ACalcSlots(3, 9), 6);
}

TEST_F(DeviceApi, TeamsDescribeTheRanks) {
  const ncclComm_t comm = make_comms(3)[2];
  const ncclTeam_t all = ncclTeamWorld(comm);
  EXPECT_EQ(all.nRanks, 3);
  EXPECT_EQ(all.rank, 2);
  EXPECT_EQ(all.stride, 1);
  EXPECT_EQ(ncclTeamRankToWorld(comm, ncclTeamRail(comm), 0), 2);
  EXPECT_EQ(ncclTeamRankToLsa(comm, all, 1), 1);
  EXPECT_EQ(ncclTeamRankToWorld(nullptr, all, 1), -1);
}

}  // namespace
}  // namespace tessera::fake
