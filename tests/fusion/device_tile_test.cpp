// The device twins of tile reports and waits against the host's tracker, on the words that both
// count with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "fusion/host_block.h"
#include "fusion/tracker.h"

namespace tessera::test {
namespace {

using device::tile_done;
using device::tile_wait;

struct Shape {
  int64_t rows, cols, tile_rows, tile_cols, block_rows;
  int chunks;     // per block
  int32_t parts;  // per tile
};

// One side of an operator without an operator: a tracker, its counters, and device code's view.
class Side {
 public:
  explicit Side(const Shape& shape, uint64_t first_pass = 0)
      : grid_{shape.rows, shape.cols, shape.tile_rows, shape.tile_cols},
        chunks_(shape.rows, shape.block_rows, shape.chunks, static_cast<size_t>(shape.cols) * 4),
        counters_(static_cast<size_t>(chunks_.chunk_of(shape.rows - 1)) + 1),
        tracker_(grid_, chunks_, shape.parts, counters_.data(), static_cast<int>(counters_.size()),
                 first_pass),
        matrix_(static_cast<size_t>(shape.rows * shape.cols)) {
    view_.tiles.matrix = matrix_.data();
    view_.tiles.rows = shape.rows;
    view_.tiles.cols = view_.tiles.ld = shape.cols;
    view_.tiles.tile_rows = static_cast<int32_t>(shape.tile_rows);
    view_.tiles.tile_cols = static_cast<int32_t>(shape.tile_cols);
    view_.tiles.down = static_cast<int32_t>(grid_.down());
    view_.tiles.across = static_cast<int32_t>(grid_.across());
    view_.tiles.parts = shape.parts;
    view_.tiles.element_bytes = sizeof(float);
    view_.chunks = chunks_.cut();
    view_.counters = reinterpret_cast<char*>(counters_.data());
    view_.tallies = reinterpret_cast<uint64_t*>(tracker_.tallies());
    view_.launches = reinterpret_cast<const uint64_t*>(&launches_);
    view_.first_pass = first_pass;
    view_.timeout_ns = 60'000'000'000;
  }

  tsrDeviceTiles& view() { return view_; }
  Tracker& tracker() { return tracker_; }
  const RowChunks& chunks() const { return chunks_; }
  Counter& launches() { return launches_; }
  Counter& counter(size_t chunk) { return counters_[chunk].counter; }
  float* row(int64_t row) { return matrix_.data() + row * grid_.cols; }
  std::vector<uint64_t> counts() const {
    std::vector<uint64_t> counts;
    for (const PaddedCounter& counter : counters_) counts.push_back(counter.counter.value());
    return counts;
  }
  // Every part of every tile, in random order.
  std::vector<std::pair<int32_t, int32_t>> reports(uint64_t seed) const {
    std::vector<std::pair<int32_t, int32_t>> tiles;
    for (int64_t i = 0; i < grid_.tiles() * view_.tiles.parts; ++i) {
      const int64_t tile = i / view_.tiles.parts;
      tiles.emplace_back(tile / grid_.across(), tile % grid_.across());
    }
    std::shuffle(tiles.begin(), tiles.end(), std::mt19937_64(seed));
    return tiles;
  }

 private:
  TileGrid grid_;
  RowChunks chunks_;
  std::vector<PaddedCounter> counters_;
  Tracker tracker_;
  std::vector<float> matrix_;
  Counter launches_;
  tsrDeviceTiles view_{};
};

// A block of one thread.
struct Alone {
  BlockOfThreads shared{1};
  HostBlock block{shared, 0};
};

constexpr Shape kTwoChunks{10, 4, 4, 2, 5, 1, 1};  // the middle row of tiles lies over both

TEST(DeviceTiles, CountAsTheTrackerDoesInEveryShape) {
  for (const int64_t rows : {1, 7, 64, 100}) {
    for (const int64_t block_rows : {1, 9, 64}) {
      for (const int chunks : {1, 2, 5}) {
        for (const int64_t tile_rows : {1, 8, 30}) {
          const Shape shape{rows, 6, tile_rows, 4, block_rows, chunks, 2};
          Side device(shape), host(shape);
          Alone alone;
          for (const auto& [row, col] : device.reports(static_cast<uint64_t>(rows))) {
            EXPECT_EQ(tile_done(alone.block, device.view(), row, col), ncclSuccess);
            host.tracker().report(row, col, 0);
            ASSERT_EQ(device.counts(), host.counts());
          }
          EXPECT_EQ(device.tracker().missing(0), "");
        }
      }
    }
  }
}

TEST(DeviceTiles, ATileReportedTwiceIsRefusedAndNotCountedWhoeverReportsIt) {
  Side side(kTwoChunks);
  Alone alone;
  EXPECT_EQ(tile_done(alone.block, side.view(), 1, 0), ncclSuccess);
  EXPECT_EQ(tile_done(alone.block, side.view(), 1, 0), ncclInvalidUsage);
  EXPECT_EQ(side.tracker().report(1, 0, 0), Tracker::Report::kTwice);
  EXPECT_EQ(side.tracker().report(0, 1, 0), Tracker::Report::kCounted);
  EXPECT_EQ(tile_done(alone.block, side.view(), 0, 1), ncclInvalidUsage);
  EXPECT_EQ(side.counts(), (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(side.tracker().missing(0), "4 of 6 tiles are missing: (0,0) (1,1) (2,0) (2,1)");
}

TEST(DeviceTiles, ThatDoNotExistOrAreNotReportedAreRefused) {
  Side side(kTwoChunks);
  Alone alone;
  for (const auto& [row, col] : {std::pair{3, 0}, {0, 2}, {-1, 0}, {0, -1}})
    EXPECT_EQ(tile_done(alone.block, side.view(), row, col), ncclInvalidArgument);
  side.view().tallies = nullptr;
  EXPECT_EQ(tile_done(alone.block, side.view(), 0, 0), ncclInvalidArgument);
  EXPECT_EQ(side.counts(), (std::vector<uint64_t>{0, 0}));
}

TEST(DeviceTiles, GoOnWithTheNextLaunchWithoutReset) {
  Side side(kTwoChunks);
  Alone alone;
  for (uint64_t launch = 0; launch < 3; ++launch) {
    for (const auto& [row, col] : side.reports(launch))
      EXPECT_EQ(tile_done(alone.block, side.view(), row, col), ncclSuccess);
    EXPECT_EQ(tile_done(alone.block, side.view(), 2, 1), ncclInvalidUsage);
    EXPECT_EQ(side.counts(), (std::vector<uint64_t>{4 * (launch + 1), 4 * (launch + 1)}));
    side.launches().publish(1);
  }
}

// A block's threads store their parts of a tile, several blocks share the tiles and their splits of
// K; who sees a chunk's counter full sees all of its rows. The thread sanitizer watches.
TEST(DeviceTiles, OfSeveralBlocksInRandomOrderAreThereWhenTheirChunkIsComplete) {
  constexpr int kBlocks = 3, kThreads = 2, kParts = 2;
  const Shape shape{90, 8, 8, 4, 30, 2, kParts};
  for (const uint64_t seed : {1, 2, 3}) {
    Side side(shape);
    const auto reports = side.reports(seed);
    std::thread host([&] {
      for (int64_t row = 0; row < shape.rows; ++row) {
        const int chunk = side.chunks().chunk_of(row);
        const RowRange rows = side.chunks().rows_of(chunk);
        const TileGrid& grid = side.tracker().grid();
        while (!side.counter(static_cast<size_t>(chunk))
                    .reached(static_cast<uint64_t>(grid.tiles_over(rows))))
          std::this_thread::yield();
        for (int64_t col = 0; col < shape.cols; ++col)
          ASSERT_EQ(side.row(row)[col], static_cast<float>(row * shape.cols + col));
      }
    });
    run_blocks(kBlocks, kThreads, [&](HostBlock& block, int b) {
      for (size_t i = static_cast<size_t>(b); i < reports.size(); i += kBlocks) {
        const auto [row, col] = reports[i];
        // The first report of a tile comes with the upper half of its rows, the second with the rest.
        const auto first = std::find(reports.begin(), reports.end(), reports[i]);
        const int64_t half = first == reports.begin() + static_cast<int64_t>(i) ? 0 : 1;
        for (int64_t r = block.thread(); r < shape.tile_rows / 2; r += block.threads()) {
          const int64_t at = row * shape.tile_rows + half * shape.tile_rows / 2 + r;
          for (int64_t c = col * 4; at < shape.rows && c < col * 4 + 4; ++c)
            side.row(at)[c] = static_cast<float>(at * shape.cols + c);
        }
        EXPECT_EQ(tile_done(block, side.view(), row, col), ncclSuccess);
      }
    });
    host.join();
    EXPECT_EQ(side.tracker().missing(0), "");
  }
}

TEST(DeviceTileWait, EndsWhenAllChunksOverTheRowsLandedAndShowsThemToEveryThread) {
  constexpr uint64_t kBefore = 5;  // launches of operators before
  const Shape shape{40, 8, 8, 8, 40, 5, 1};
  Side side(shape, kBefore);
  for (size_t chunk = 0; chunk < 5; ++chunk) side.counter(chunk).publish(kBefore);
  side.launches().publish(1);
  std::thread lander([&] {
    std::vector<int> order{0, 1, 2, 3, 4};
    std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
    for (const int chunk : order) {
      const RowRange rows = side.chunks().rows_of(chunk);
      for (int64_t row = rows.begin; row < rows.end; ++row) side.row(row)[0] = 1;
      side.counter(static_cast<size_t>(chunk)).publish(1);
    }
  });
  run_blocks(2, 2, [&](HostBlock& block, int b) {
    const int64_t first = b * 17, rows = 23;
    const void* where = nullptr;
    EXPECT_EQ(tile_wait(block, side.view(), first, rows, &where), ncclSuccess);
    EXPECT_EQ(where, side.row(first));
    for (int64_t row = first; row < first + rows; ++row) EXPECT_EQ(side.row(row)[0], 1);
  });
  lander.join();
}

TEST(DeviceTileWait, TimesOutInAllThreadsOfTheBlockAndGivesNoAddress) {
  Side side(kTwoChunks);
  side.view().timeout_ns = 2'000'000;
  side.launches().publish(1);
  side.counter(0).publish(1);  // rows 0 to 4 landed, 5 to 9 do not
  run_blocks(1, 3, [&](HostBlock& block, int) {
    const void* where = nullptr;
    EXPECT_EQ(tile_wait(block, side.view(), 2, 4, &where), ncclRemoteError);
    EXPECT_EQ(where, nullptr);
    EXPECT_EQ(tile_wait(block, side.view(), 2, 3, &where), ncclSuccess);
    EXPECT_EQ(where, side.row(2));
  });
}

TEST(DeviceTileWait, TimesOutForTheLatestLaunchWhenOnlyTheOneBeforeLanded) {
  Side side(kTwoChunks);
  side.view().timeout_ns = 2'000'000;
  side.counter(0).publish(1);
  side.launches().publish(1);
  Alone alone;
  EXPECT_EQ(tile_wait(alone.block, side.view(), 0, 1, nullptr), ncclSuccess);
  side.launches().publish(1);
  EXPECT_EQ(tile_wait(alone.block, side.view(), 0, 1, nullptr), ncclRemoteError);
}

TEST(DeviceTileWait, GoesOnBeyondItsTimeWhileOtherChunksCome) {
  Side side({40, 8, 8, 8, 40, 5, 1});
  side.view().timeout_ns = 150'000'000;
  side.launches().publish(1);
  std::thread lander([&] {
    for (size_t chunk = 5; chunk-- > 0;) {  // the one that is waited for comes last
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      side.counter(chunk).publish(1);
    }
  });
  Alone alone;
  EXPECT_EQ(tile_wait(alone.block, side.view(), 0, 1, nullptr), ncclSuccess);
  lander.join();
}

TEST(DeviceTileWait, RefusesRowsThatAreNotThereAndOperatorsThatWereNotLaunched) {
  Side side(kTwoChunks);
  Alone alone;
  for (const auto& [first, rows] : {std::pair{-1, 1}, {0, 11}, {10, 1}, {0, -1}})
    EXPECT_EQ(tile_wait(alone.block, side.view(), first, rows, nullptr), ncclInvalidArgument);
  EXPECT_EQ(tile_wait(alone.block, side.view(), 0, 1, nullptr), ncclInvalidUsage);
  side.launches().publish(1);
  const void* where = nullptr;
  EXPECT_EQ(tile_wait(alone.block, side.view(), 10, 0, &where), ncclSuccess);
  EXPECT_EQ(where, side.row(10));
}

}  // namespace
}  // namespace tessera::test
