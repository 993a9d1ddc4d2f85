// Operators give the unfused result, bit by bit, however tiles come.
#include <gmock/gmock.h>

#include "fusion/workload.h"

namespace tessera::test {
namespace {

FusedDescription description(Collective collective, Mapping mapping, int64_t rows, int64_t cols,
                             int64_t tile_rows, int64_t tile_cols) {
  FusedDescription d;
  d.collective = collective;
  d.mapping = mapping;
  d.rows = rows;
  d.cols = cols;
  d.tile_rows = tile_rows;
  d.tile_cols = tile_cols;
  return d;
}

struct Map {
  Collective collective;
  Mapping mapping;
};
constexpr Map kMaps[] = {
    {Collective::kReduceScatter, Mapping::kDirect}, {Collective::kReduceScatter, Mapping::kRing},
    {Collective::kAllReduce, Mapping::kDirect},     {Collective::kAllReduce, Mapping::kRing},
    {Collective::kAllGather, Mapping::kDirect},     {Collective::kAllGather, Mapping::kRing},
    {Collective::kAllToAll, Mapping::kDirect},
};

class EveryMap : public ::testing::TestWithParam<Map> {
 protected:
  FusedDescription matrix(int64_t rows, int64_t cols, int64_t tile_rows, int64_t tile_cols) {
    return description(GetParam().collective, GetParam().mapping, rows, cols, tile_rows, tile_cols);
  }
};

TEST_P(EveryMap, GivesTheSameBitsForOneToEightRanks) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    Load load;
    load.description = matrix(ranks * 24, 20, 8, 8);
    load.ranks = ranks;
    load.launches = 3;
    load.seed = static_cast<uint64_t>(ranks);
    run_load<float>(load);
  }
}

TEST_P(EveryMap, WorksWithTilesThatStraddleChunksAndRaggedEdges) {
  const bool divides = GetParam().collective == Collective::kAllToAll;
  for (const int64_t rows : {1, 5, 37, 101}) {
    for (const int64_t tile_rows : {1, 3, 7, 200}) {
      Load load;
      load.ranks = 3;
      load.description = matrix(divides ? rows * 3 : rows, 19, tile_rows, 5);
      load.description.chunks = 3;
      load.launches = 2;
      load.early = true;
      run_load<int32_t>(load);
    }
  }
}

TEST_P(EveryMap, WorksInEveryLayout) {
  for (const bool column_major : {false, true}) {
    Load load;
    load.ranks = 3;
    load.description = matrix(48, 21, 8, 8);
    load.description.column_major = column_major;
    load.description.input_ld = 59;
    load.description.output_ld = 61;
    load.launches = 2;
    run_load<double>(load);
  }
}

TEST_P(EveryMap, WorksWithSeveralProducersSplitsOfKAndAConsumer) {
  Load load;
  load.ranks = 2;
  load.description = matrix(64, 32, 8, 8);
  load.description.parts = GetParam().collective == Collective::kAllGather ? 1 : 3;
  load.launches = 5;
  load.consumer = true;
  load.early = true;
  run_load<int32_t>(load);
  load.description.parts = 1;
  load.threads = 3;
  run_load<int32_t>(load);
}

TEST_P(EveryMap, GivesTheSameBitsBetweenHosts) {
  for (const std::vector<int>& hosts : {std::vector{0, 1}, {0, 0, 1}, {0, 1, 2, 0}}) {
    Load load;
    load.hosts = hosts;
    load.ranks = static_cast<int>(hosts.size());
    load.description = matrix(load.ranks * 40, 33, 8, 8);
    load.description.remote = true;  // not between hosts: taken back
    load.launches = 20;
    load.consumer = true;
    run_load<float>(load);
  }
}

TEST_P(EveryMap, GivesTheSameBitsBehindEmulatedLinks) {
  Load load;
  load.emulate = "uniform:bandwidth=1GB/s,latency=20us";
  load.ranks = 3;
  load.description = matrix(120, 33, 8, 8);
  load.launches = 10;
  load.threads = 2;
  load.consumer = true;
  run_load<float>(load);
}

TEST_P(EveryMap, IsLaunchedAgainWithoutReset) {
  Load load;
  load.ranks = 2;
  load.description = matrix(16, 8, 4, 4);
  load.launches = 200;
  run_load<float>(load);
}

INSTANTIATE_TEST_SUITE_P(Fusion, EveryMap, ::testing::ValuesIn(kMaps), [](const auto& info) {
  std::string name = to_string(info.param.collective);
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name + "_" + to_string(info.param.mapping);
});

TEST(FusedOperator, AddsInPlace) {
  for (const Mapping mapping : {Mapping::kDirect, Mapping::kRing}) {
    Load load;
    load.ranks = 4;
    load.description = description(Collective::kAllReduce, mapping, 50, 9, 4, 9);
    load.launches = 2;
    load.in_place = true;
    run_load<float>(load);
  }
}

// The library's own ring adds in the order of the fused ring.
TEST(FusedOperator, EqualsTheUnfusedCollectiveBitByBit) {
  constexpr int kRanks = 3;
  constexpr int64_t kRows = 30, kCols = 16;
  CommOptions options = quick_options();
  options.config.algorithm = "ring";
  run_ranks(kRanks, options, [&](Communicator& comm) {
    std::vector<float> input(kRows * kCols), fused(kRows * kCols / kRanks), unfused(fused.size());
    for (int64_t i = 0; i < kRows * kCols; ++i)
      input[static_cast<size_t>(i)] = element<float>(comm.rank(), 0, i / kCols, i % kCols);
    const auto op = make_operator(
        comm, description(Collective::kReduceScatter, Mapping::kRing, kRows, kCols, 10, 16));
    ASSERT_EQ(op->launch(input.data(), fused.data()).message(), "");
    for (int64_t tile = 2; tile >= 0; --tile) ASSERT_EQ(op->tile_done(tile, 0).message(), "");
    ASSERT_EQ(op->wait().message(), "");
    Call call;
    call.collective = Collective::kReduceScatter;
    call.send = input.data();
    call.recv = unfused.data();
    call.count = unfused.size();
    ASSERT_EQ(run(comm, call).message(), "");
    EXPECT_EQ(std::memcmp(fused.data(), unfused.data(), fused.size() * sizeof(float)), 0);
  });
}

TEST(FusedOperator, SharesACommunicatorWithOthersAndWithCollectives) {
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    Load first, second;
    first.description = description(Collective::kReduceScatter, Mapping::kRing, 40, 16, 8, 8);
    second.description = description(Collective::kAllReduce, Mapping::kDirect, 24, 8, 4, 4);
    first.launches = second.launches = 20;
    const auto a = make_operator(comm, first.description);
    const auto b = make_operator(comm, second.description);
    std::thread other([&] { Worker<float>(second, *b).run(); });
    Worker<float>(first, *a).run();
    for (int i = 0; i < 20; ++i) {
      int32_t one = 1, sum = 0;
      Call call;
      call.collective = Collective::kAllReduce;
      call.send = &one;
      call.recv = &sum;
      call.count = 1;
      call.type = DataType::kInt32;
      ASSERT_EQ(run(comm, call).message(), "");
      EXPECT_EQ(sum, 2);
    }
    other.join();
  });
}

TEST(FusedOperator, IsTakenUpAgainAfterItWasClosed) {
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    Load load;
    load.description = description(Collective::kAllReduce, Mapping::kRing, 4096, 512, 512, 512);
    for (int i = 0; i < 40; ++i) {  // 40 different plans would not fit into the arena
      const auto op = make_operator(comm, load.description);
      ASSERT_NE(op, nullptr);
      if (i % 20 == 0) Worker<float>(load, *op).run();
      EXPECT_EQ(op->close().message(), "");
    }
  });
}

TEST(FusedOperator, FloatsOfHalfWidthAreAddedInFloat) {
  run_ranks(4, quick_options(), [&](Communicator& comm) {
    FusedDescription d = description(Collective::kReduceScatter, Mapping::kDirect, 4, 8, 1, 8);
    d.type = DataType::kBfloat16;
    const auto op = make_operator(comm, d);
    // 256 + 1 is no bfloat16: added one by one in bfloat16, three ones are lost.
    const uint16_t value = comm.rank() == 0 ? 0x4380 : 0x3f80;  // 256, 1
    std::vector<uint16_t> input(32, value), output(8);
    ASSERT_EQ(op->launch(input.data(), output.data()).message(), "");
    for (int64_t tile = 0; tile < 4; ++tile) ASSERT_EQ(op->tile_done(tile, 0).message(), "");
    ASSERT_EQ(op->wait().message(), "");
    for (const uint16_t got : output) EXPECT_EQ(got, 0x4382);  // 260: 259 rounded to nearest even
  });
}

TEST(FusedOperator, ABudgetOfNothingMovesDataInWaitsOnly) {
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    Load load;
    load.description = description(Collective::kReduceScatter, Mapping::kDirect, 64, 8, 8, 8);
    load.launches = 3;
    const auto op = make_operator(comm, load.description);
    op->set_budget({0, 1});
    Worker<float>(load, *op).run();
    op->set_budget({100, 1});
    Worker<float>(load, *op).run();
  });
}

TEST(FusedOperator, AThreadOfItsOwnRunsTheSteps) {
  run_ranks(3, quick_options(), [&](Communicator& comm) {
    const auto op =
        make_operator(comm, description(Collective::kAllReduce, Mapping::kDirect, 30, 4, 5, 4));
    std::vector<int32_t> input(120), output(120);
    for (int launch = 0; launch < 10; ++launch) {
      std::fill(input.begin(), input.end(), launch);
      ASSERT_EQ(op->announce(input.data(), output.data()).message(), "");
      std::thread driver([&] { EXPECT_EQ(op->run(input.data(), output.data()).message(), ""); });
      for (int64_t tile = 0; tile < 6; ++tile) EXPECT_EQ(op->tile_done(tile, 0).message(), "");
      EXPECT_EQ(op->wait().message(), "");
      driver.join();
    }
  });
}

}  // namespace
}  // namespace tessera::test
