// Operators that device code drives: blocks of threads run the device twins on real operators, whose
// steps run on host threads.
#include <gmock/gmock.h>
#include <tessera/stream.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "fusion/c_operator.h"
#include "fusion/host_block.h"

namespace tessera {
namespace {

using test::HostBlock;
using test::run_blocks;
using ::testing::HasSubstr;

constexpr int kBlocks = 2, kThreads = 2;

// An operator as device code has it.
struct DeviceOperator : Operator {
  DeviceOperator(const tsrFusedConfig_t& wish, ncclComm_t comm) : Operator(wish, comm) {
    EXPECT_EQ(tsrFusedDeviceInput(op, input.data(), &made), ncclSuccess) << last_error();
    EXPECT_EQ(tsrFusedDeviceOutput(op, output.data(), &used), ncclSuccess) << last_error();
  }

  std::vector<int64_t> shuffled(uint64_t seed) const {
    std::vector<int64_t> order(static_cast<size_t>(tsrTileCount(&made.tiles)));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    return order;
  }

  // Makes these tiles; all elements are `value`.
  void make_on_device(float value, const std::vector<int64_t>& order) const {
    run_blocks(kBlocks, kThreads, [&](HostBlock& block, int b) {
      for (size_t i = static_cast<size_t>(b); i < order.size(); i += kBlocks) {
        int32_t row = 0, col = 0;
        tsrTileOrder(&made.tiles, order[i], &row, &col);
        store(block, row, col, value);
        EXPECT_EQ(device::tile_done(block, made, row, col), ncclSuccess);
      }
    });
  }

  void store(const HostBlock& block, int32_t row, int32_t col, float value) const {
    int32_t rows = 0, cols = 0;
    int64_t ld = 0;
    tsrTileSize(&made.tiles, row, col, &rows, &cols);
    auto* to = static_cast<float*>(tsrTilePtr(&made.tiles, row, col, &ld));
    for (int32_t r = block.thread(); r < rows; r += block.threads()) {
      for (int32_t c = 0; c < cols; ++c)
        to[made.tiles.column_major != 0 ? c * ld + r : r * ld + c] = value;
    }
  }

  // Waits for each row of tiles and compares it.
  void use_on_device(float value) {
    run_blocks(1, kThreads, [&](HostBlock& block, int) {
      for (int64_t first = 0; first < used.tiles.rows; first += used.tiles.tile_rows) {
        const int64_t rows = std::min<int64_t>(used.tiles.tile_rows, used.tiles.rows - first);
        const void* where = nullptr;
        ASSERT_EQ(device::tile_wait(block, used, first, rows, &where), ncclSuccess);
        const auto* from = static_cast<const float*>(where);
        for (int64_t r = block.thread(); r < rows; r += block.threads()) {
          for (int64_t c = 0; c < used.tiles.cols; ++c) {
            const int64_t ld = used.tiles.ld;
            ASSERT_EQ(from[used.tiles.column_major != 0 ? c * ld + r : r * ld + c], value);
          }
        }
      }
    });
  }

  tsrDeviceTiles made{}, used{};
};

// Kernels that make and use tiles, beside the thread that is in tsrFusedWait.
void drive(const tsrFusedConfig_t& wish, int ranks) {
  const Ranks group(ranks);
  group.on_threads([&](int rank, ncclComm_t comm) {
    DeviceOperator op(wish, comm);
    for (int launch = 1; launch < 4; ++launch) {
      const auto made = static_cast<float>(launch * (rank + 1));
      const auto sum = static_cast<float>(launch * ranks * (ranks + 1) / 2);
      ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
      std::thread producer(
          [&] { op.make_on_device(made, op.shuffled(static_cast<uint64_t>(rank * 10 + launch))); });
      std::thread consumer([&] { op.use_on_device(sum); });
      ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
      producer.join();
      consumer.join();
    }
  });
}

TEST(DeviceOperator, ReducesAndScattersWhatBlocksReport) {
  drive(config(tsrFusedReduceScatter, 100, 50), 3);
}

TEST(DeviceOperator, GoesRoundTheRingWithStoresIntoThePeersMemory) {
  tsrFusedConfig_t wish = config(tsrFusedAllReduce, 96, 32);
  wish.map = tsrMapRing;
  wish.remote = 1;
  drive(wish, 3);
}

TEST(DeviceOperator, ReducesColumnMajorMatrices) {
  tsrFusedConfig_t wish = config(tsrFusedAllReduce, 60, 20);
  wish.column_major = 1;
  drive(wish, 2);
}

TEST(DeviceOperator, BlocksAndHostThreadsShareTheTilesOfALaunch) {
  const Ranks ranks(2);
  ranks.on_threads([](int, ncclComm_t comm) {
    DeviceOperator op(config(tsrFusedAllReduce, 64, 32), comm);
    std::vector<int64_t> own = op.shuffled(1);
    const std::vector<int64_t> device(own.begin() + 7, own.end());
    own.resize(7);
    ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
    std::thread kernel([&] { op.make_on_device(3, device); });
    run_blocks(1, 1, [&](HostBlock& thread, int) {
      for (const int64_t i : own) {
        int32_t row = 0, col = 0;
        tsrTileOrder(&op.in, i, &row, &col);
        op.store(thread, row, col, 3);
        EXPECT_EQ(tsrTileDone(&op.in, row, col), ncclSuccess) << last_error();
      }
    });
    ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
    kernel.join();
    EXPECT_THAT(op.output, ::testing::Each(6));
  });
}

TEST(DeviceOperator, AStreamsThreadRunsTheStepsOfAnAllGatherThatBlocksWaitFor) {
  const Ranks ranks(2);
  ranks.on_threads([](int, ncclComm_t comm) {
    tsrStream_t stream = nullptr;
    ASSERT_EQ(tsrStreamCreate(&stream), ncclSuccess);
    {
      DeviceOperator op(config(tsrFusedAllGather, 64, 16), comm);
      EXPECT_EQ(op.made.tallies, nullptr);
      ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), stream), ncclSuccess);
      op.use_on_device(1);
      ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
    }
    ASSERT_EQ(tsrStreamDestroy(stream), ncclSuccess);
  });
}

TEST(DeviceOperator, NamesTheTileThatADeviceDidNotReport) {
  setenv("TESSERA_TIMEOUT_MS", "300", 1);
  {
    const Ranks ranks(1);
    ranks.on_threads([](int, ncclComm_t comm) {
      auto op = std::make_unique<DeviceOperator>(config(tsrFusedReduceScatter, 16, 32), comm);
      EXPECT_EQ(op->used.timeout_ns, 300'000'000);
      ASSERT_EQ(tsrFusedLaunch(op->op, op->input.data(), op->output.data(), nullptr), ncclSuccess);
      run_blocks(1, 1, [&](HostBlock& block, int) {
        for (const auto& [row, col] : {std::pair{0, 0}, {0, 1}, {1, 1}})
          EXPECT_EQ(device::tile_done(block, op->made, row, col), ncclSuccess);
        EXPECT_EQ(device::tile_done(block, op->made, 1, 1), ncclInvalidUsage);
      });
      std::thread consumer([&] {
        run_blocks(1, kThreads, [&](HostBlock& block, int) {
          EXPECT_EQ(device::tile_wait(block, op->used, 8, 8, nullptr), ncclRemoteError);
        });
      });
      EXPECT_EQ(tsrFusedWait(op->op), ncclRemoteError);
      EXPECT_THAT(last_error(), HasSubstr("1 of 4 tiles are missing: (1,0)"));
      consumer.join();
    });
  }
  unsetenv("TESSERA_TIMEOUT_MS");
}

TEST(DeviceOperator, RefusesAHandleThatIsNoneAndNoRoomForTheAnswer) {
  tsrDeviceTiles tiles;
  EXPECT_EQ(tsrFusedDeviceInput(nullptr, nullptr, &tiles), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("tsrFusedDeviceInput: operator"));
  const Ranks ranks(1);
  ranks.on_threads([](int, ncclComm_t comm) {
    const Operator op(config(tsrFusedReduceScatter, 16, 16), comm);
    EXPECT_EQ(tsrFusedDeviceOutput(op.op, nullptr, nullptr), ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("tsrFusedDeviceOutput: tiles is NULL"));
  });
}

}  // namespace
}  // namespace tessera
