// Asynchronous streams, and the order of operations on them.
#include "api/fake/fixture.h"

namespace tessera::fake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Streams : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    ASSERT_EQ(tsrStreamCreate(&a_), ncclSuccess);
    ASSERT_EQ(tsrStreamCreate(&b_), ncclSuccess);
  }
  void TearDown() override {
    world().open_gate();
    EXPECT_EQ(tsrStreamDestroy(a_), ncclSuccess);
    EXPECT_EQ(tsrStreamDestroy(b_), ncclSuccess);
    ApiTest::TearDown();
  }

  tsrStream_t a_ = nullptr, b_ = nullptr;
};

TEST_F(Streams, ACallOnAStreamReturnsBeforeItsOperationEnds) {
  const ncclComm_t comm = make_comm();
  world().close_gate();
  EXPECT_EQ(all_reduce(comm, 8, a_), ncclSuccess);
  world().await_at_gate(1);
  EXPECT_EQ(tsrStreamQuery(a_), ncclInProgress);
  world().open_gate();
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclSuccess);
  EXPECT_EQ(tsrStreamQuery(a_), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(1));
}

TEST_F(Streams, AStreamThatTesseraDidNotMakeMeansComplete) {
  int foreign = 0;
  EXPECT_EQ(all_reduce(make_comm(), 8, reinterpret_cast<cudaStream_t>(&foreign)), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(1));
}

TEST_F(Streams, OperationsOfOneCommunicatorRunInTheOrderOfTheirCalls) {
  const ncclComm_t comm = make_comm();
  for (size_t i = 1; i <= 50; ++i) ASSERT_EQ(all_reduce(comm, i, i % 2 ? a_ : b_), ncclSuccess);
  ASSERT_EQ(all_reduce(comm, 51), ncclSuccess) << "stream 0 takes its turn, too";
  const std::vector<Call> calls = world().calls();
  ASSERT_THAT(calls, SizeIs(51));
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].count, i + 1);
  EXPECT_EQ(world().most_inside(), 1);
}

TEST_F(Streams, DifferentCommunicatorsOnDifferentStreamsRunAtTheSameTime) {
  const auto comms = make_comms(2);
  world().close_gate();
  ASSERT_EQ(all_reduce(comms[0], 8, a_), ncclSuccess);
  ASSERT_EQ(all_reduce(comms[1], 8, b_), ncclSuccess);
  world().await_at_gate(2);
  world().open_gate();
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclSuccess);
  EXPECT_EQ(tsrStreamSynchronize(b_), ncclSuccess);
}

TEST_F(Streams, AnErrorSurfacesOnceFromSynchronize) {
  const ncclComm_t comm = make_comm();
  world().fail_execute(Status(Code::kRemote, "rank 1 died"));
  EXPECT_EQ(all_reduce(comm, 8, a_), ncclSuccess);
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclRemoteError);
  EXPECT_EQ(last_error(), "rank 1 died");
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclSuccess);
}

TEST_F(Streams, RanksOfOneGroupOnTheirOwnStreamsRunAtTheSameTime) {
  const auto comms = make_comms(2);
  world().close_gate();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(all_reduce(comms[0], 8, a_), ncclSuccess);
  ASSERT_EQ(all_reduce(comms[1], 8, b_), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  world().await_at_gate(2);
  world().open_gate();
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclSuccess);
  EXPECT_EQ(tsrStreamSynchronize(b_), ncclSuccess);
}

TEST_F(Streams, OneCommunicatorOnTwoStreamsOfAGroupRunsAsOneAndBothStreamsWait) {
  const ncclComm_t comm = make_comm();
  world().close_gate();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(all_reduce(comm, 1, a_), ncclSuccess);
  ASSERT_EQ(all_reduce(comm, 2, b_), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  world().await_at_gate(1);
  EXPECT_EQ(tsrStreamQuery(b_), ncclInProgress);
  world().open_gate();
  EXPECT_EQ(tsrStreamSynchronize(b_), ncclSuccess);
  EXPECT_THAT(world().executed(), ElementsAre(SizeIs(2)));
}

TEST_F(Streams, TwoCommunicatorsThatShareTwoStreamsInOppositeOrderDoNotBlockEachOther) {
  const auto comms = make_comms(2);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(all_reduce(comms[0], 1, a_), ncclSuccess);
    ASSERT_EQ(all_reduce(comms[0], 2, b_), ncclSuccess);
    ASSERT_EQ(all_reduce(comms[1], 3, b_), ncclSuccess);
    ASSERT_EQ(all_reduce(comms[1], 4, a_), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  }
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclSuccess);
  EXPECT_EQ(tsrStreamSynchronize(b_), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(40));
}

TEST_F(Streams, AGroupWithACallOnStreamZeroIsCompleteWhenItEnds) {
  const ncclComm_t comm = make_comm();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(all_reduce(comm, 1, a_), ncclSuccess);
  ASSERT_EQ(all_reduce(comm, 2), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_THAT(world().executed(), ElementsAre(SizeIs(2)));
}

TEST_F(Streams, DestroyingACommunicatorWaitsForItsOperations) {
  const ncclComm_t comm = make_comm();
  forget(comm);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(all_reduce(comm, 8, a_), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(10));
}

TEST_F(Streams, DestroyingAStreamRunsWhatIsEnqueued) {
  const ncclComm_t comm = make_comm();
  tsrStream_t stream = nullptr;
  ASSERT_EQ(tsrStreamCreate(&stream), ncclSuccess);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(all_reduce(comm, 8, stream), ncclSuccess);
  EXPECT_EQ(tsrStreamDestroy(stream), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(10));
  EXPECT_EQ(tsrStreamSynchronize(stream), ncclInvalidArgument);
  EXPECT_EQ(all_reduce(comm, 8, stream), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("not one that tsrStreamCreate returned"));
}

TEST_F(Streams, AbortEndsWhatIsEnqueued) {
  const ncclComm_t comm = make_comm();
  forget(comm);
  world().close_gate();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(all_reduce(comm, 8, a_), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(tsrStreamSynchronize(a_), ncclRemoteError);
}

TEST_F(Streams, NullAndGarbageAreRefused) {
  int foreign = 0;
  for (const tsrStream_t stream : {tsrStream_t{}, reinterpret_cast<tsrStream_t>(&foreign)}) {
    EXPECT_EQ(tsrStreamSynchronize(stream), ncclInvalidArgument);
    EXPECT_EQ(tsrStreamQuery(stream), ncclInvalidArgument);
    EXPECT_EQ(tsrStreamDestroy(stream), ncclInvalidArgument);
  }
  EXPECT_EQ(tsrStreamCreate(nullptr), ncclInvalidArgument);
}

}  // namespace
}  // namespace tessera::fake
