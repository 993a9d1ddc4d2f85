// The C interface of tiles that are added onto the peer.
#include <gmock/gmock.h>
#include <tessera/tile_device.h>

#include "comm/processes.h"
#include "fusion/c_operator.h"
#include "fusion/workload.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

tsrFusedConfig_t onto_config(tsrFusedCollective_t collective, int32_t onto) {
  tsrFusedConfig_t wish = config(collective, 32, 48);  // 4 x 3 tiles of 8 x 16
  wish.onto = onto;
  return wish;
}

// A kernel for whatever became of the wish: every tile is `value`. What it fails with.
std::string make_onto(const tsrTiles& tiles, float value) {
  for (int64_t i = 0; i < tsrTileCount(&tiles); ++i) {
    int32_t row = 0, col = 0, rows = 0, cols = 0, add = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    tsrTileSize(&tiles, row, col, &rows, &cols);
    void* where = nullptr;
    int64_t ld = 0;
    if (tsrTileOnto(&tiles, row, col, &where, &ld, &add) != ncclSuccess)
      return ncclGetLastError(nullptr);
    auto* const tile = static_cast<float*>(where);
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t c = 0; c < cols; ++c)
        tile[r * ld + c] = add != 0 ? tile[r * ld + c] + value : value;
    }
    if (tsrTileDone(&tiles, row, col) != ncclSuccess) return ncclGetLastError(nullptr);
  }
  return {};
}

TEST(OntoApi, OneKernelServesEveryOutcomeOfTheWish) {
  for (const tsrFusedCollective_t collective : {tsrFusedReduceScatter, tsrFusedAllReduce}) {
    for (const int32_t wish : {tsrOntoOff, tsrOntoAllow}) {
      for (const int count : {2, 3}) {
        const Ranks ranks(count);
        ranks.on_threads([&](int rank, ncclComm_t comm) {
          Operator op(onto_config(collective, wish), comm);
          EXPECT_EQ(op.in.onto, wish == tsrOntoAllow && count == 2 ? 1 : 0);
          EXPECT_EQ(op.out.onto, 0);
          for (int launch = 1; launch < 5; ++launch) {
            ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr),
                      ncclSuccess);
            EXPECT_EQ(make_onto(op.in, static_cast<float>(launch * (rank + 1))), "");
            ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
            const auto sum = static_cast<float>(launch * count * (count + 1) / 2);
            for (int64_t i = 0; i < op.out.rows * 48; ++i)
              ASSERT_EQ(op.output[static_cast<size_t>(i)], sum);
          }
        });
      }
    }
  }
}

TEST(OntoApi, AProducerBeginsWithItsOwnRows) {
  const Ranks ranks(2);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    Operator op(onto_config(tsrFusedReduceScatter, tsrOntoRequire), comm);
    for (int64_t i = 0; i < tsrTileCount(&op.in); ++i) {
      int32_t row = 0, col = 0;
      tsrTileOrder(&op.in, i, &row, &col);
      EXPECT_EQ(row / 2, i < 6 ? rank : 1 - rank) << "tile " << i;
    }
  });
}

TEST(OntoApi, ArgumentsAreChecked) {
  const Ranks ranks(2);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    tsrFused_t none = nullptr;
    tsrFusedConfig_t wish = onto_config(tsrFusedReduceScatter, 3);
    if (rank == 0) {  // threads share the last error
      EXPECT_EQ(tsrFusedCreate(&wish, comm, &none), ncclInvalidArgument);
      EXPECT_THAT(last_error(), HasSubstr("onto 3 is unknown"));
    }
    Operator op(onto_config(tsrFusedReduceScatter, tsrOntoRequire), comm);
    if (rank == 1) return;
    void* where = nullptr;
    int64_t ld = 0;
    int32_t add = 0;
    EXPECT_EQ(tsrTileOnto(nullptr, 0, 0, &where, &ld, &add), ncclInvalidArgument);
    EXPECT_EQ(tsrTileOnto(&op.in, 0, 0, nullptr, &ld, &add), ncclInvalidArgument);
    EXPECT_EQ(tsrTileOnto(&op.in, 4, 0, &where, &ld, &add), ncclInvalidArgument);
    EXPECT_EQ(tsrTileOnto(&op.out, 0, 0, &where, &ld, &add), ncclInvalidArgument);
    EXPECT_EQ(tsrTileOnto(&op.in, 0, 0, &where, &ld, &add), ncclInvalidUsage);
    tsrDeviceTiles device;
    EXPECT_EQ(tsrFusedDeviceInput(op.op, nullptr, &device), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("create it without `onto`"));
  });
}

// What a rank finds wrong.
std::string sum_between_processes(Communicator& comm) {
  FusedDescription d;
  d.rows = 32;
  d.cols = 16;
  d.tile_rows = d.tile_cols = 8;
  d.onto_wish = OntoWish::kAllow;
  Result<std::unique_ptr<FusedOperator>> op =
      FusedOperator::create(static_cast<HostCommunicator&>(comm), d);
  if (!op.ok()) return op.status().message();
  if (op.value()->onto()) return "added onto a peer of another process";
  const std::string text = op.value()->explain();
  if (text.find("ranks are in different processes") == text.npos) return text;
  std::vector<float> input(512, 1), output(512);
  if (Status s = op.value()->launch(input.data(), output.data()); !s.ok()) return s.message();
  for (int64_t tile = 0; tile < 8; ++tile)
    if (Status s = op.value()->tile_done(tile / 2, tile % 2); !s.ok()) return s.message();
  if (Status s = op.value()->wait(); !s.ok()) return s.message();
  return output[255] == 2 ? "" : "wrong sum";
}

TEST(OntoApi, RanksInDifferentProcessesGoTheOtherWay) {
  for (const test::Ending& ending :
       test::run_processes(2, test::quick_options(), sum_between_processes))
    EXPECT_EQ(ending.text, "");
}

}  // namespace
}  // namespace tessera
