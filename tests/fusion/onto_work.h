// A made-up kernel that adds tiles onto the peer, and what must come of it.
#pragma once

#include <atomic>
#include <chrono>

#include "fusion/workload.h"

namespace tessera::test {

inline FusedDescription onto(int64_t rows, int64_t cols, int64_t tile_rows, int64_t tile_cols,
                             Collective collective = Collective::kReduceScatter) {
  FusedDescription d;
  d.collective = collective;
  d.rows = rows;
  d.cols = cols;
  d.tile_rows = tile_rows;
  d.tile_cols = tile_cols;
  d.onto_wish = OntoWish::kRequire;
  return d;
}

using Tiles = std::vector<std::pair<int64_t, int64_t>>;

// The tiles of one rank's rows, in random order.
inline Tiles tiles_of(const FusedOperator& op, int rank, std::mt19937_64& random) {
  const FusedDescription& d = op.description();
  const TileGrid grid{d.rows, d.cols, d.tile_rows, d.tile_cols};
  const RowRange owned = op.geometry().owned(rank);
  Tiles tiles;
  for (int64_t row = 0; row < grid.down(); ++row) {
    if (row * d.tile_rows < owned.begin || row * d.tile_rows >= owned.end) continue;
    for (int64_t col = 0; col < grid.across(); ++col) tiles.emplace_back(row, col);
  }
  std::shuffle(tiles.begin(), tiles.end(), random);
  return tiles;
}

// Stores or adds the tile where it is to be.
template <class T>
void put_tile(const FusedOperator& op, const FusedOperator::TilePlace& place, int launch,
              int64_t row, int64_t col) {
  const FusedDescription& d = op.description();
  T* const to = reinterpret_cast<T*>(place.first);
  const int64_t top = row * d.tile_rows, left = col * d.tile_cols;
  const int64_t rows = std::min(d.tile_rows, d.rows - top);
  const int64_t cols = std::min(d.tile_cols, d.cols - left);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      T& at = to[d.column_major ? c * place.ld + r : r * place.ld + c];
      const T value = element<T>(op.rank(), launch, top + r, left + c);
      at = place.add ? at + value : value;
    }
  }
}

struct OntoLoad {
  FusedDescription description;
  int threads = 1;
  int launches = 1;
  bool on_stream = false;  // a thread drives, launches are announced in advance
  int late_rank = -1;      // who begins each launch later
  uint64_t seed = 1;
};

template <class T>
class OntoWorker {
 public:
  OntoWorker(const OntoLoad& load, FusedOperator& op)
      : load_(load),
        op_(op),
        random_(load.seed * 100 + static_cast<uint64_t>(op.rank())),
        output_(op.description(), op.geometry().output_rows(), op.description().output_ld) {}

  void run() {
    std::thread stream;
    if (load_.on_stream) {
      for (int i = 0; i < load_.launches; ++i)
        ASSERT_EQ(op_.announce(nullptr, output_.data()).message(), "");
      stream = std::thread([&] {
        for (int i = 0; i < load_.launches; ++i) {
          EXPECT_EQ(op_.run(nullptr, output_.data()).message(), "");
          check(i);
          ++checked_;
        }
      });
    }
    for (int launch = 0; launch < load_.launches; ++launch) {
      if (op_.rank() == load_.late_rank) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!load_.on_stream) {
        ASSERT_EQ(op_.launch(nullptr, output_.data()).message(), "");
      }
      make(launch);
      if (load_.on_stream) {
        while (checked_ <= launch) std::this_thread::yield();
      } else {
        ASSERT_EQ(op_.wait().message(), "");
        check(launch);
      }
    }
    if (stream.joinable()) stream.join();
    EXPECT_TRUE(output_.room_is_untouched());
  }

 private:
  void make(int launch) {
    Tiles tiles = tiles_of(op_, op_.rank(), random_);
    for (const auto& tile : tiles_of(op_, 1 - op_.rank(), random_)) tiles.push_back(tile);
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < load_.threads; ++t) {
      threads.emplace_back([&] {
        for (size_t i = next++; i < tiles.size(); i = next++) {
          const auto [row, col] = tiles[i];
          const Result<FusedOperator::TilePlace> place = op_.tile_onto(row, col);
          ASSERT_TRUE(place.ok()) << place.status().message();
          put_tile<T>(op_, place.value(), launch, row, col);
          EXPECT_EQ(op_.tile_done(row, col).message(), "");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void check(int launch) {
    const bool scatters = op_.description().collective == Collective::kReduceScatter;
    const int64_t first = scatters ? op_.geometry().owned(op_.rank()).begin : 0;
    for (int64_t r = 0; r < output_.rows(); ++r) {
      for (int64_t c = 0; c < op_.description().cols; ++c) {
        const T want = element<T>(0, launch, first + r, c) + element<T>(1, launch, first + r, c);
        ASSERT_EQ(output_.at(r, c), want)
            << "rank " << op_.rank() << " launch " << launch << " row " << r << " col " << c;
      }
    }
  }

  const OntoLoad& load_;
  FusedOperator& op_;
  std::mt19937_64 random_;
  Padded<T> output_;
  std::atomic<int> checked_{0};
};

template <class T>
void run_onto(OntoLoad load) {
  load.description.type = type_of<T>();
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    const auto op = make_operator(comm, load.description);
    ASSERT_NE(op, nullptr);
    ASSERT_TRUE(op->onto());
    OntoWorker<T>(load, *op).run();
    EXPECT_EQ(op->close().message(), "");
  });
}

}  // namespace tessera::test
