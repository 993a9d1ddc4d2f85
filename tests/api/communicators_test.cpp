// Communicators from beginning to end, on real ranks: streams, splits, shrinks, aborts,
// disagreement.
#include <gmock/gmock.h>
#include <tessera/stream.h>

#include <cstring>

#include "api/ranks.h"

namespace tessera {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr size_t kElements = 777;

// All-reduce of `value` over kElements elements; the sum, or -1 when the call fails.
int sum_of(ncclComm_t comm, int value, cudaStream_t stream = nullptr) {
  std::vector<int> data(kElements, value);
  if (ncclAllReduce(data.data(), data.data(), kElements, ncclInt32, ncclSum, comm, stream) !=
      ncclSuccess)
    return -1;
  if (stream != nullptr && tsrStreamSynchronize(stream) != ncclSuccess) return -1;
  EXPECT_THAT(data, Each(data[0]));
  return data[0];
}

ncclResult_t settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (; state == ncclInProgress; std::this_thread::yield())
    if (const ncclResult_t result = ncclCommGetAsyncError(comm, &state); result != ncclSuccess)
      return result;
  return state;
}

TEST(Communicators, RanksOnStreamsOfTheirOwnSum) {
  const Ranks ranks(3);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    tsrStream_t stream = nullptr;
    ASSERT_EQ(tsrStreamCreate(&stream), ncclSuccess);
    EXPECT_EQ(sum_of(comm, rank, stream), 3);
    EXPECT_EQ(sum_of(comm, rank), 3);
    EXPECT_EQ(tsrStreamDestroy(stream), ncclSuccess);
  });
}

TEST(Communicators, OneThreadEnqueuesForSeveralRanks) {
  const Ranks ranks(2);
  tsrStream_t streams[2];
  int data[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(tsrStreamCreate(&streams[rank]), ncclSuccess);
    ASSERT_EQ(
        ncclAllReduce(data[rank], data[rank], 4, ncclInt32, ncclSum, ranks[rank], streams[rank]),
        ncclSuccess);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(tsrStreamSynchronize(streams[rank]), ncclSuccess) << last_error();
    EXPECT_THAT(data[rank], ::testing::ElementsAre(11, 22, 33, 44));
    EXPECT_EQ(tsrStreamDestroy(streams[rank]), ncclSuccess);
  }
}

TEST(Communicators, SplitByParity) {
  const Ranks ranks(5);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    ncclComm_t half = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, rank % 2, -rank, &half, nullptr), ncclSuccess) << last_error();
    int size = 0, mine = -1;
    EXPECT_EQ(ncclCommCount(half, &size), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(half, &mine), ncclSuccess);
    EXPECT_EQ(size, rank % 2 ? 2 : 3);
    EXPECT_EQ(mine, size - 1 - rank / 2) << "the key reverses the order";
    EXPECT_EQ(sum_of(half, rank), rank % 2 ? 4 : 6);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
    EXPECT_EQ(sum_of(comm, rank), 10) << "the parent goes on";
  });
}

TEST(Communicators, ARankWithoutColourGetsNone) {
  const Ranks ranks(3);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    ncclComm_t rest = comm;
    ASSERT_EQ(ncclCommSplit(comm, rank == 1 ? NCCL_SPLIT_NOCOLOR : 7, 0, &rest, nullptr),
              ncclSuccess)
        << last_error();
    EXPECT_EQ(rest == nullptr, rank == 1);
    if (rest != nullptr) {
      EXPECT_EQ(sum_of(rest, rank), 2);
    }
    EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
  });
}

TEST(Communicators, OneThreadSplitsAllItsRanksInAGroup) {
  const Ranks ranks(3);
  ncclComm_t children[3] = {};
  ranks.in_group([&](int rank, ncclComm_t comm) {
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &children[rank], nullptr), ncclSuccess);
  });
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] { EXPECT_EQ(sum_of(children[rank], 1), 3); });
  for (std::thread& thread : threads) thread.join();
  for (ncclComm_t child : children) EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

TEST(Communicators, TheSurvivorsShrinkAfterARankAborted) {
  Ranks ranks(3);
  ASSERT_EQ(ncclCommAbort(ranks.take(1)), ncclSuccess);
  const auto shrink = [&](int rank) {
    EXPECT_THAT(sum_of(ranks[rank], 1), -1) << "a rank is gone";
    int gone = 1;
    ncclComm_t rest = nullptr;
    ASSERT_EQ(ncclCommShrink(ranks[rank], &gone, 1, &rest, nullptr, NCCL_SHRINK_ABORT), ncclSuccess)
        << last_error();
    EXPECT_EQ(sum_of(rest, rank + 1), 4);
    EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
  };
  std::thread other([&] { shrink(2); });
  shrink(0);
  other.join();
}

TEST(Communicators, AbortEndsAWaitForAPeerThatDoesNotCome) {
  Ranks ranks(2);
  const ncclComm_t lonely = ranks.take(0);
  int result = 0;
  std::thread caller([&] { result = sum_of(lonely, 1); });
  EXPECT_EQ(ncclCommAbort(lonely), ncclSuccess);
  caller.join();
  EXPECT_EQ(result, -1);
}

TEST(Communicators, DisagreementIsToldToBothSides) {
  const Ranks ranks(2);
  std::string texts[2];
  ranks.on_threads([&](int rank, ncclComm_t comm) {
    std::vector<int> data(10);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), rank == 0 ? 10 : 7, ncclInt32, ncclSum, comm,
                            nullptr),
              ncclInvalidUsage);
    texts[rank] = last_error();
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(text, HasSubstr("10"));
    EXPECT_THAT(text, HasSubstr("7"));
  }
}

TEST(Communicators, RanksOfOneThreadFinaliseAndGo) {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclSuccess) << last_error();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ncclCommDestroy(ranks.take(rank)), ncclSuccess);
}

TEST(Communicators, RanksOnThreadsFinaliseAndGo) {
  Ranks ranks(3);
  ranks.on_threads(
      [](int, ncclComm_t comm) { EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess) << last_error(); });
}

TEST(Communicators, NonBlockingRanksOfOneThread) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[3];
  for (int rank = 0; rank < 3; ++rank)
    ASSERT_EQ(ncclCommInitRankConfig(&comms[rank], 3, id, rank, &config), ncclInProgress);
  for (ncclComm_t comm : comms) ASSERT_EQ(settle(comm), ncclSuccess) << last_error();
  int data[3] = {1, 2, 3};
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(ncclAllReduce(&data[rank], &data[rank], 1, ncclInt32, ncclSum, comms[rank], nullptr),
              ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(settle(comm), ncclSuccess) << last_error();
  EXPECT_THAT(data, Each(6));
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Communicators, WindowsOnAllocatedMemoryCarryCollectives) {
  const Ranks ranks(3);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 1 << 20), ncclSuccess) << last_error();
    ncclWindow_t window = nullptr;
    ASSERT_EQ(ncclCommWindowRegister(comm, memory, 1 << 20, &window, NCCL_WIN_COLL_SYMMETRIC),
              ncclSuccess)
        << last_error();
    auto* data = static_cast<int*>(memory);
    for (int i = 0; i < 1000; ++i) data[i] = rank * i;
    EXPECT_EQ(ncclAllReduce(data, data, 1000, ncclInt32, ncclSum, comm, nullptr), ncclSuccess);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(data[i], 3 * i);
    EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclSuccess) << last_error();
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  });
}

TEST(Communicators, ASendToTheOwnRankArrives) {
  const Ranks ranks(2);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    int from[3] = {rank, 2, 3}, to[3] = {};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(from, 3, ncclInt32, rank, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclRecv(to, 3, ncclInt32, rank, comm, nullptr), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
    EXPECT_EQ(std::memcmp(from, to, sizeof(from)), 0);
  });
}

TEST(Communicators, ZeroCountSendsMeet) {
  const Ranks ranks(2);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    const ncclResult_t result = rank == 0 ? ncclSend(nullptr, 0, ncclInt8, 1, comm, nullptr)
                                          : ncclRecv(nullptr, 0, ncclInt8, 0, comm, nullptr);
    EXPECT_EQ(result, ncclSuccess) << last_error();
  });
}

}  // namespace
}  // namespace tessera
