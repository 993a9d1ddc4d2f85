// The C interface of fused operators.
#include <gmock/gmock.h>
#include <tessera/fused.h>
#include <tessera/stream.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "api/ranks.h"
#include "fusion/c_operator.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(FusedApi, AKernelDrivesAReduceScatterTileByTile) {
  const Ranks ranks(3);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    Operator op(config(tsrFusedReduceScatter, 100, 50), comm);
    for (int launch = 1; launch < 4; ++launch) {
      ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
      op.make_tiles(static_cast<float>(launch * (rank + 1)));
      ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
      EXPECT_EQ(tsrFusedQuery(op.op), ncclSuccess);
      int64_t first = 0, count = 0;
      tsrTileOwned(&op.in, rank, &first, &count);
      EXPECT_EQ(count, rank == 2 ? 32 : 34);
      EXPECT_EQ(op.out.rows, count);
      for (int64_t i = 0; i < count * 50; ++i)
        ASSERT_EQ(op.output[static_cast<size_t>(i)], static_cast<float>(launch * 6));
    }
  });
}

TEST(FusedApi, AnEstimateIsTheSameOnAllRanksAndAnExplanationAdvises) {
  const Ranks ranks(3);
  double fused[3] = {};
  ranks.on_threads([&](int rank, ncclComm_t comm) {
    const Operator op(config(tsrFusedReduceScatter, 96, 64), comm);
    tsrFusedCosts_t costs;
    ASSERT_EQ(tsrFusedEstimate(op.op, 1000, 0, &costs), ncclSuccess) << last_error();
    fused[rank] = costs.fused_us;
    EXPECT_GE(costs.fused_us, 1000);
    EXPECT_DOUBLE_EQ(costs.unfused_us, 1000 + costs.collective_us);
    EXPECT_EQ(costs.fuse, 1.03 * costs.fused_us < costs.unfused_us ? 1 : 0);
    EXPECT_EQ(costs.read_bytes, 5u * 32 * 64 * 4);  // two copies for peers, then three parts
    char text[1000];
    ASSERT_EQ(tsrFusedExplain(op.op, text, sizeof text), ncclSuccess);
    EXPECT_THAT(text, HasSubstr("model: the collective alone takes"));
  });
  EXPECT_EQ(fused[0], fused[1]);
  EXPECT_EQ(fused[0], fused[2]);
}

TEST(FusedApi, AnEstimateRefusesTimesThatMakeNoSense) {
  const Ranks ranks(1);
  ranks.on_threads([](int, ncclComm_t comm) {
    const Operator op(config(tsrFusedReduceScatter, 16, 16), comm);
    tsrFusedCosts_t costs;
    EXPECT_EQ(tsrFusedEstimate(op.op, -1, 0, &costs), ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("finite and not negative"));
    EXPECT_EQ(tsrFusedEstimate(op.op, 1, 0, nullptr), ncclInvalidArgument);
  });
}

TEST(FusedApi, AStreamRunsLaunchesOneAfterTheOther) {
  const Ranks ranks(2);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    tsrStream_t stream = nullptr;
    ASSERT_EQ(tsrStreamCreate(&stream), ncclSuccess);
    {
      Operator first(config(tsrFusedAllReduce, 40, 16), comm);
      Operator second(config(tsrFusedAllGather, 40, 16), comm);
      ASSERT_EQ(tsrFusedLaunch(first.op, first.input.data(), first.output.data(), stream),
                ncclSuccess);
      // Its input is the rank's rows of the sum.
      int64_t begin = 0, count = 0;
      tsrTileOwned(&first.in, rank, &begin, &count);
      const float* rows = first.output.data() + begin * 16;
      ASSERT_EQ(tsrFusedLaunch(second.op, rows, second.output.data(), stream), ncclSuccess);
      first.make_tiles(static_cast<float>(rank + 1));
      const void* where = nullptr;
      ASSERT_EQ(tsrTileWait(&second.out, 5, 35, &where), ncclSuccess) << last_error();
      EXPECT_EQ(where, second.output.data() + 5 * 16);
      ASSERT_EQ(tsrStreamSynchronize(stream), ncclSuccess) << last_error();
      EXPECT_EQ(second.output, std::vector<float>(640, 3.0F));
    }
    EXPECT_EQ(tsrStreamDestroy(stream), ncclSuccess);
  });
}

TEST(FusedApi, TheOrderOfTilesBeginsBeforeTheOwnRowsAndHasEveryTileOnce) {
  const Ranks ranks(4);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    Operator op(config(tsrFusedAllReduce, 64, 32), comm);  // 8 x 2 tiles: two rows a rank
    std::set<std::pair<int, int>> seen;
    int32_t row = 0, col = 0;
    for (int64_t i = 0; i < tsrTileCount(&op.in); ++i) {
      tsrTileOrder(&op.in, i, &row, &col);
      EXPECT_TRUE(seen.emplace(row, col).second);
      EXPECT_EQ(row / 2, (rank + 3 - static_cast<int>(i) / 4) % 4) << "producer's tile " << i;
    }
    EXPECT_EQ(seen.size(), 16);
    for (int64_t i = 0; i < tsrTileCount(&op.out); ++i) {
      tsrTileOrder(&op.out, i, &row, &col);
      EXPECT_EQ(row / 2, (rank + 4 - static_cast<int>(i) / 4) % 4) << "consumer's tile " << i;
    }
  });
}

TEST(FusedApi, TilesMayBeStoredStraightIntoThePeerThatGetsThem) {
  for (const tsrFusedCollective_t collective :
       {tsrFusedReduceScatter, tsrFusedAllReduce, tsrFusedAllToAll}) {
    for (const tsrFusedMap_t map : {tsrMapDirect, tsrMapRing}) {
      for (const int column_major : {0, 1}) {
        if (collective == tsrFusedAllToAll && map == tsrMapRing) continue;
        const Ranks ranks(4);
        ranks.on_threads([&](int rank, ncclComm_t comm) {
          tsrFusedConfig_t wish = config(collective, 128, 40);
          wish.map = map;
          wish.remote = 1;
          wish.column_major = column_major;
          Operator op(wish, comm);
          ASSERT_NE(op.in.remote_base, nullptr);
          for (int launch = 1; launch < 20; ++launch) {
            std::fill(op.input.begin(), op.input.end(), -99.0F);
            ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr),
                      ncclSuccess);
            op.make_tiles(static_cast<float>(launch * (rank + 1)));
            ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
            // Some of the input was not stored here.
            const auto elsewhere = std::count(op.input.begin(), op.input.end(), -99.0F);
            EXPECT_EQ(elsewhere, (map == tsrMapRing ? 32 : 96) * 40);
            for (int64_t i = 0; i < op.out.rows * 40; ++i) {
              const int64_t row = column_major != 0 ? i % op.out.rows : i / 40;
              const auto factor =
                  static_cast<float>(collective == tsrFusedAllToAll ? row / 32 + 1 : 10);
              ASSERT_EQ(op.output[static_cast<size_t>(i)], static_cast<float>(launch) * factor);
            }
          }
        });
      }
    }
  }
}

// Two chunks per rank, the second of which is stored here and copied.
TEST(FusedApi, SomeChunksMayBeStoredStraightAndOthersCopied) {
  for (const tsrFusedMap_t map : {tsrMapDirect, tsrMapRing}) {
    const Ranks ranks(4);
    ranks.on_threads([&](int rank, ncclComm_t comm) {
      tsrFusedConfig_t wish = config(tsrFusedAllReduce, 128, 40);
      wish.map = map;
      wish.remote = 1;
      wish.chunks = 2;
      wish.remote_chunks = 1;
      Operator op(wish, comm);
      tsrFusedCosts_t costs;
      ASSERT_EQ(tsrFusedEstimate(op.op, 0, 0, &costs), ncclSuccess);
      for (int launch = 1; launch < 20; ++launch) {
        std::fill(op.input.begin(), op.input.end(), -99.0F);
        ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
        op.make_tiles(static_cast<float>(launch * (rank + 1)));
        ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
        const auto elsewhere = std::count(op.input.begin(), op.input.end(), -99.0F);
        EXPECT_EQ(elsewhere, (map == tsrMapRing ? 16 : 48) * 40);
        ASSERT_EQ(op.output, std::vector<float>(128 * 40, static_cast<float>(launch * 10)));
      }
    });
  }
}

TEST(FusedApi, TilesThatLieOverTwoChunksStayWhereTheyAreMade) {
  const Ranks ranks(2);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    tsrFusedConfig_t wish = config(tsrFusedReduceScatter, 100, 16);
    wish.remote = 1;
    Operator op(wish, comm);
    EXPECT_EQ(op.in.remote_base, nullptr);
    ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
    op.make_tiles(static_cast<float>(rank + 1));
    ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
    EXPECT_EQ(op.output[0], 3);
  });
}

TEST(FusedApi, MisuseIsToldByName) {
  const Ranks ranks(1);
  Operator op(config(tsrFusedReduceScatter, 16, 16), ranks[0]);
  ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
  EXPECT_EQ(tsrFusedQuery(op.op), ncclInProgress);
  EXPECT_EQ(tsrTileDone(&op.in, 2, 0), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("no tile (2,0)"));
  EXPECT_EQ(tsrTileDone(&op.in, 1, 0), ncclSuccess);
  EXPECT_EQ(tsrTileDone(&op.in, 1, 0), ncclInvalidUsage);
  EXPECT_THAT(last_error(), HasSubstr("tile (1,0) was reported more than"));
  EXPECT_EQ(tsrTileWait(&op.out, 15, 2, nullptr), ncclInvalidArgument);
  EXPECT_EQ(tsrTileDone(nullptr, 0, 0), ncclInvalidArgument);
  EXPECT_EQ(tsrTileWait(nullptr, 0, 0, nullptr), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedDestroy(op.op), ncclInvalidUsage);
  EXPECT_EQ(tsrFusedSetBudget(op.op, 101, 1), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedSetBudget(op.op, 10, 3), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedSetBudget(op.op, 10, 4), ncclSuccess);
  char text[60];
  EXPECT_EQ(tsrFusedExplain(op.op, text, sizeof text), ncclSuccess);
  EXPECT_THAT(text, HasSubstr("fused reduce-scatter of 16 x 16 float32, direct"));
  EXPECT_EQ(strlen(text), 59);
  EXPECT_EQ(tsrFusedExplain(op.op, nullptr, 3), ncclInvalidArgument);
  EXPECT_EQ(tsrTileDone(&op.in, 0, 0), ncclSuccess);
  EXPECT_EQ(tsrFusedWait(op.op), ncclSuccess);
}

TEST(FusedApi, ConfigurationsThatMakeNoSenseAreRefused) {
  const Ranks ranks(1);
  const auto refused = [&](void (*spoil)(tsrFusedConfig_t&), const char* text) {
    tsrFusedConfig_t wish = config(tsrFusedReduceScatter, 16, 16);
    spoil(wish);
    tsrFused_t op = nullptr;
    EXPECT_EQ(tsrFusedCreate(&wish, ranks[0], &op), ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr(text));
    EXPECT_EQ(op, nullptr);
  };
  refused([](tsrFusedConfig_t& c) { c.size = 8; }, "the config says 8 bytes");
  refused([](tsrFusedConfig_t& c) { c.remote_chunks = 1; }, "of which `chunks` says 0");
  refused(
      [](tsrFusedConfig_t& c) {
        c.remote = c.chunks = 1;
        c.remote_chunks = 2;
      },
      "remote stores of chunks 0x2, of 1 that a rank has");
  refused([](tsrFusedConfig_t& c) { c.rows = -1; }, "has no elements");
  refused([](tsrFusedConfig_t& c) { c.type = static_cast<ncclDataType_t>(99); }, "data type 99");
  refused([](tsrFusedConfig_t& c) { c.op = static_cast<ncclRedOp_t>(77); }, "operation 77");
  refused([](tsrFusedConfig_t& c) { c.map = static_cast<tsrFusedMap_t>(5); }, "map 5");
  refused([](tsrFusedConfig_t& c) { c.collective = static_cast<tsrFusedCollective_t>(4); },
          "collective 4");
  const tsrFusedConfig_t wish = config(tsrFusedReduceScatter, 16, 16);
  tsrFused_t op = nullptr;
  EXPECT_EQ(tsrFusedCreate(nullptr, ranks[0], &op), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedCreate(&wish, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedCreate(&wish, nullptr, &op), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedWait(nullptr), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("tsrFusedWait: operator"));
  EXPECT_EQ(tsrFusedDestroy(reinterpret_cast<tsrFused_t>(17)), ncclInvalidArgument);
}

TEST(FusedApi, AnOperatorOutlivesItsCommunicator) {
  Ranks ranks(2);
  std::vector<std::unique_ptr<Operator>> ops(2);
  ranks.on_threads([&](int rank, ncclComm_t comm) {
    ops[rank] = std::make_unique<Operator>(config(tsrFusedAllReduce, 16, 16), comm);
    EXPECT_EQ(
        tsrFusedLaunch(ops[rank]->op, ops[rank]->input.data(), ops[rank]->output.data(), nullptr),
        ncclSuccess);
  });
  EXPECT_EQ(ncclCommAbort(ranks.take(0)), ncclSuccess);
  EXPECT_NE(tsrFusedWait(ops[0]->op), ncclSuccess);
  EXPECT_EQ(tsrFusedWait(ops[1]->op), ncclRemoteError);
  EXPECT_EQ(ncclCommAbort(ranks.take(1)), ncclSuccess);
  EXPECT_NE(tsrFusedQuery(ops[1]->op), ncclSuccess);
}

TEST(FusedSides, TilesOfTheOutputAreNotReportedAndRowsOfTheInputNotAwaited) {
  const Ranks group(2);
  group.on_threads([&](int, ncclComm_t comm) {
    Operator op(config(tsrFusedAllReduce, 64, 32), comm);
    EXPECT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
    EXPECT_EQ(tsrTileDone(&op.out, 0, 0), ncclInvalidArgument);
    const void* where = nullptr;
    EXPECT_EQ(tsrTileWait(&op.in, 0, 8, &where), ncclInvalidArgument);
    EXPECT_EQ(where, nullptr);
    op.make_tiles(1);
    EXPECT_EQ(tsrTileWait(&op.out, 0, 64, &where), ncclSuccess) << last_error();
    EXPECT_EQ(op.output.front(), 2);
  });
}

TEST(FusedEstimate, MayBeAskedForBesideCollectivesOfTheCommunicator) {
  const Ranks group(2);
  group.on_threads([&](int, ncclComm_t comm) {
    const Operator op(config(tsrFusedAllReduce, 64, 32), comm);
    std::thread other([&] {
      for (int i = 0; i < 4; ++i) {
        tsrFusedCosts_t costs;
        EXPECT_EQ(tsrFusedEstimate(op.op, 10.0 * i, 1, &costs), ncclSuccess);
      }
    });
    std::vector<float> send(1 << 13), recv(1 << 14);
    for (size_t n = 1; n <= send.size(); n *= 2) {
      EXPECT_EQ(ncclAllReduce(send.data(), recv.data(), n, ncclFloat, ncclSum, comm, nullptr),
                ncclSuccess);
      EXPECT_EQ(ncclAllGather(send.data(), recv.data(), n, ncclFloat, comm, nullptr), ncclSuccess);
    }
    other.join();
  });
}

TEST(FusedSides, MayBeAskedForWhileLeadingDimensionsChange) {
  const Ranks group(1);
  group.on_threads([&](int, ncclComm_t comm) {
    Operator op(config(tsrFusedReduceScatter, 64, 32), comm);
    std::thread other([&] {
      for (int i = 0; i < 2000; ++i) {
        tsrTiles tiles;
        EXPECT_EQ(tsrFusedInput(op.op, op.input.data(), &tiles), ncclSuccess);
        EXPECT_TRUE(tiles.ld == 32 || tiles.ld == 33);
      }
    });
    for (int i = 0; i < 2000; ++i) EXPECT_EQ(tsrFusedSetLines(op.op, 32 + i % 2, 32), ncclSuccess);
    other.join();
  });
}

}  // namespace
}  // namespace tessera
