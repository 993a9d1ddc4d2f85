// Every collective moves what it says, from threads and from one thread's group, in place and out
// of place.
#include "api/ranks.h"

namespace tessera {
namespace {

// Odd on purpose, and larger than a cache line.
constexpr size_t kCount = 1003;

int value(int rank, size_t i) { return rank * 10'000 + static_cast<int>(i % 997); }

struct Buffers {
  std::vector<int> in, out;
};

// Input block b of `rank` holds value(rank * ranks + b, i).
std::vector<Buffers> make_buffers(int ranks) {
  std::vector<Buffers> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    all[rank].in.resize(ranks * kCount);
    all[rank].out.assign(ranks * kCount, -1);
    for (int b = 0; b < ranks; ++b)
      for (size_t i = 0; i < kCount; ++i) all[rank].in[b * kCount + i] = value(rank * ranks + b, i);
  }
  return all;
}

// Block `block` of `data` equals input block `from_block` of rank `from`.
void expect_block(const std::vector<int>& data, int block, int ranks, int from, int from_block) {
  for (size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(data[block * kCount + i], value(from * ranks + from_block, i))
        << "block " << block << " element " << i;
}

void expect_sum(const std::vector<int>& data, int ranks, int from_block) {
  for (size_t i = 0; i < kCount; ++i) {
    int sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += value(rank * ranks + from_block, i);
    ASSERT_EQ(data[i], sum) << "element " << i;
  }
}

void expect_done(ncclResult_t result) { EXPECT_EQ(result, ncclSuccess) << last_error(); }

class Collectives : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  void run(const std::function<void(int, ncclComm_t)>& body) {
    const Ranks comms(ranks());
    if (std::get<1>(GetParam()))
      comms.in_group(body);
    else
      comms.on_threads(body);
  }
  std::vector<Buffers> all_ = make_buffers(ranks());
};

TEST_P(Collectives, AllReduceSums) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclAllReduce(all_[rank].in.data(), all_[rank].out.data(), kCount, ncclInt32,
                              ncclSum, comm, nullptr));
  });
  for (const Buffers& mine : all_) expect_sum(mine.out, ranks(), 0);
}

TEST_P(Collectives, AllReduceSumsInPlace) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclAllReduce(all_[rank].in.data(), all_[rank].in.data(), kCount, ncclInt32,
                              ncclSum, comm, nullptr));
  });
  for (const Buffers& mine : all_) expect_sum(mine.in, ranks(), 0);
}

TEST_P(Collectives, ReduceSumsAtTheRoot) {
  const int root = ranks() - 1;
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclReduce(all_[rank].in.data(), rank == root ? all_[rank].out.data() : nullptr,
                           kCount, ncclInt32, ncclSum, root, comm, nullptr));
  });
  expect_sum(all_[root].out, ranks(), 0);
}

TEST_P(Collectives, BroadcastCopiesFromTheRoot) {
  const int root = ranks() / 2;
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclBroadcast(all_[rank].in.data(), all_[rank].out.data(), kCount, ncclInt32, root,
                              comm, nullptr));
  });
  for (const Buffers& mine : all_) expect_block(mine.out, 0, ranks(), root, 0);
}

TEST_P(Collectives, BcastCopiesInPlace) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclBcast(all_[rank].in.data(), kCount, ncclInt32, 0, comm, nullptr));
  });
  for (const Buffers& mine : all_) expect_block(mine.in, 0, ranks(), 0, 0);
}

TEST_P(Collectives, AllGatherCollectsInPlace) {
  run([&](int rank, ncclComm_t comm) {
    std::vector<int>& data = all_[rank].in;
    expect_done(
        ncclAllGather(data.data() + rank * kCount, data.data(), kCount, ncclInt32, comm, nullptr));
  });
  for (const Buffers& mine : all_)
    for (int b = 0; b < ranks(); ++b) expect_block(mine.in, b, ranks(), b, b);
}

TEST_P(Collectives, ReduceScatterSumsBlocks) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclReduceScatter(all_[rank].in.data(), all_[rank].out.data(), kCount, ncclInt32,
                                  ncclSum, comm, nullptr));
  });
  for (int rank = 0; rank < ranks(); ++rank) expect_sum(all_[rank].out, ranks(), rank);
}

TEST_P(Collectives, AllToAllExchangesBlocks) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclAlltoAll(all_[rank].in.data(), all_[rank].out.data(), kCount, ncclInt32, comm,
                             nullptr));
  });
  for (int rank = 0; rank < ranks(); ++rank)
    for (int b = 0; b < ranks(); ++b) expect_block(all_[rank].out, b, ranks(), b, rank);
}

TEST_P(Collectives, AllToAllOnEqualBuffersEnds) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(
        ncclAlltoAll(all_[rank].in.data(), all_[rank].in.data(), kCount, ncclInt32, comm, nullptr));
  });
}

TEST_P(Collectives, GatherCollectsAtTheRoot) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclGather(all_[rank].in.data(), rank == 0 ? all_[rank].out.data() : nullptr,
                           kCount, ncclInt32, 0, comm, nullptr));
  });
  for (int b = 0; b < ranks(); ++b) expect_block(all_[0].out, b, ranks(), b, 0);
}

TEST_P(Collectives, ScatterDistributesFromTheRoot) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclScatter(rank == 0 ? all_[rank].in.data() : nullptr, all_[rank].out.data(),
                            kCount, ncclInt32, 0, comm, nullptr));
  });
  for (int rank = 0; rank < ranks(); ++rank) expect_block(all_[rank].out, 0, ranks(), 0, rank);
}

TEST_P(Collectives, SendAndReceiveAroundARing) {
  run([&](int rank, ncclComm_t comm) {
    expect_done(ncclGroupStart());
    expect_done(
        ncclSend(all_[rank].in.data(), kCount, ncclInt32, (rank + 1) % ranks(), comm, nullptr));
    expect_done(ncclRecv(all_[rank].out.data(), kCount, ncclInt32, (rank + ranks() - 1) % ranks(),
                         comm, nullptr));
    expect_done(ncclGroupEnd());
  });
  for (int rank = 0; rank < ranks(); ++rank)
    expect_block(all_[rank].out, 0, ranks(), (rank + ranks() - 1) % ranks(), 0);
}

TEST_P(Collectives, ScaledSumsTakeAFactorPerRank) {
  std::vector<std::vector<float>> data(ranks(), std::vector<float>(kCount, 1));
  run([&](int rank, ncclComm_t comm) {
    float factor = static_cast<float>(rank + 1);
    ncclRedOp_t op;
    expect_done(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, comm));
    expect_done(ncclAllReduce(data[rank].data(), data[rank].data(), kCount, ncclFloat32, op, comm,
                              nullptr));
    expect_done(ncclRedOpDestroy(op, comm));
  });
  const float sum = static_cast<float>(ranks() * (ranks() + 1) / 2);
  for (const std::vector<float>& mine : data) EXPECT_EQ(mine, std::vector<float>(kCount, sum));
}

TEST_P(Collectives, AveragesOfOneRankToo) {
  std::vector<std::vector<int>> data(ranks(), std::vector<int>(kCount));
  run([&](int rank, ncclComm_t comm) {
    data[rank].assign(kCount, -3 * rank);
    expect_done(ncclAllReduce(data[rank].data(), data[rank].data(), kCount, ncclInt32, ncclAvg,
                              comm, nullptr));
  });
  const int average = -3 * (ranks() * (ranks() - 1) / 2) / ranks();
  for (const std::vector<int>& mine : data) EXPECT_EQ(mine, std::vector<int>(kCount, average));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5), ::testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "InOneGroup" : "OnThreads");
                         });

}  // namespace
}  // namespace tessera
