// Ranks that are processes: slots lie in memory that they share.
#include "comm/processes.h"

#include <gmock/gmock.h>
#include <tessera/fused.h>

#include <algorithm>

#include "fusion/workload.h"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;

// What a rank finds wrong; empty: nothing.
std::string sum_in_tiles(ncclComm_t comm, int rank, int ranks, tsrFusedMap_t map) {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.collective = tsrFusedAllReduce;
  config.map = map;
  config.rows = 96;
  config.cols = 64;
  config.tile_rows = config.tile_cols = 16;
  config.remote = 1;
  tsrFused_t op = nullptr;
  if (tsrFusedCreate(&config, comm, &op) != ncclSuccess) return ncclGetLastError(nullptr);
  std::vector<float> input(96 * 64, -1), output(input.size());
  tsrTiles tiles;
  if (tsrFusedInput(op, input.data(), &tiles) != ncclSuccess) return "no tiles";
  if (tiles.remote_base == nullptr) return "no remote stores";
  for (int launch = 1; launch < 50; ++launch) {
    if (tsrFusedLaunch(op, input.data(), output.data(), nullptr) != ncclSuccess) return "launch";
    for (int64_t i = 0; i < tsrTileCount(&tiles); ++i) {
      int32_t row = 0, col = 0;
      int64_t ld = 0;
      tsrTileOrder(&tiles, i, &row, &col);
      auto* tile = static_cast<float*>(tsrTilePtr(&tiles, row, col, &ld));
      for (int r = 0; r < 16; ++r)
        std::fill_n(tile + r * ld, 16, static_cast<float>(launch * (rank + 1)));
      if (tsrTileDone(&tiles, row, col) != ncclSuccess) return ncclGetLastError(nullptr);
    }
    if (tsrFusedWait(op) != ncclSuccess) return ncclGetLastError(nullptr);
    const auto sum = static_cast<float>(launch * ranks * (ranks + 1) / 2);
    if (std::count(output.begin(), output.end(), sum) != 96 * 64) return "wrong sums";
  }
  return tsrFusedDestroy(op) == ncclSuccess ? "" : ncclGetLastError(nullptr);
}

TEST(FusedProcesses, StoreTilesIntoEachOthersMemory) {
  constexpr int kRanks = 3;
  for (const tsrFusedMap_t map : {tsrMapDirect, tsrMapRing}) {
    Late<ncclUniqueId> id;
    std::vector<pid_t> children;
    for (int rank = 0; rank < kRanks; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        ncclComm_t comm = nullptr;
        std::string fault = "ncclCommInitRank";
        if (ncclCommInitRank(&comm, kRanks, id.take().value_or(ncclUniqueId{}), rank) ==
            ncclSuccess)
          fault = sum_in_tiles(comm, rank, kRanks, map);
        if (!fault.empty()) std::fprintf(stderr, "rank %d: %s\n", rank, fault.c_str());
        const bool ended = ncclCommDestroy(comm) == ncclSuccess;
        _exit(fault.empty() && ended ? 0 : 1);
      }
      children.push_back(pid);
    }
    ncclUniqueId made{};
    EXPECT_EQ(ncclGetUniqueId(&made), ncclSuccess);
    id.give(made, kRanks);
    for (const pid_t pid : children) {
      int state = 0;
      ASSERT_EQ(waitpid(pid, &state, 0), pid);
      EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    }
  }
}

TEST(FusedProcesses, AProcessThatEndsInTheMiddleEndsTheLaunchOfTheOthers) {
  const std::vector<Ending> endings = run_processes(3, quick_options(), [](Communicator& comm) {
    FusedDescription d;
    d.rows = 24;
    d.cols = d.tile_cols = 4;
    d.tile_rows = 2;
    Result<std::unique_ptr<FusedOperator>> op = FusedOperator::create(host_rank(comm), d);
    if (!op.ok()) return op.status().message();
    std::vector<float> input(96, 1), output(96);
    Status status = op.value()->launch(input.data(), output.data());
    for (int64_t tile = 0; tile < 12 && status.ok(); ++tile) {
      // Both others still lack tiles of it: rank 0 one of four, rank 2 all.
      if (comm.rank() == 1 && tile == 3) raise(SIGKILL);
      status = op.value()->tile_done(tile, 0);
    }
    if (status.ok()) status = op.value()->wait();
    if (status.code() != Code::kRemote) return "wrong outcome: " + status.message();
    return std::string();
  });
  EXPECT_TRUE(endings[1].killed);
  EXPECT_EQ(endings[0].text, "");
  EXPECT_EQ(endings[2].text, "");
}

}  // namespace
}  // namespace tessera::test
