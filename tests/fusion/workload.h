// A made-up kernel: it stores tiles of a matrix in some order, on some threads, and reports them;
// and what must come of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/ranks.h"
#include "fusion/operator.h"

namespace tessera::test {

// An element that rank `rank` contributes; floats with many bits, so that the order of sums shows.
template <class T>
T element(int rank, int launch, int64_t row, int64_t col) {
  uint64_t x = static_cast<uint64_t>(row * 1'000'003 + col) * 64 + static_cast<uint64_t>(rank);
  x = (x + static_cast<uint64_t>(launch) * 7'919) * 0x9e3779b97f4a7c15;
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x >> 40) / T(1000) - T(8000);
  return static_cast<T>(x >> 38);  // sums of many do not overflow
}

// A matrix with room between its lines that must not be touched.
template <class T>
class Padded {
 public:
  Padded(const FusedDescription& d, int64_t rows, int64_t ld)
      : column_major_(d.column_major),
        rows_(rows),
        cols_(d.cols),
        ld_(ld),
        data_(static_cast<size_t>(ld * (d.column_major ? d.cols : rows)), kUntouched) {}

  T& at(int64_t row, int64_t col) {
    return data_[static_cast<size_t>(column_major_ ? col * ld_ + row : row * ld_ + col)];
  }
  T* data() { return data_.data(); }
  int64_t rows() const { return rows_; }
  bool room_is_untouched() const {
    const int64_t length = column_major_ ? rows_ : cols_;
    for (size_t i = 0; i < data_.size(); ++i)
      if (static_cast<int64_t>(i) % ld_ >= length && data_[i] != kUntouched) return false;
    return true;
  }

 private:
  static constexpr T kUntouched = T(-77);
  bool column_major_;
  int64_t rows_, cols_, ld_;
  std::vector<T> data_;
};

struct Load {
  FusedDescription description;
  int ranks = 2;
  int threads = 1;  // producers per rank
  int launches = 1;
  bool early = false;     // some tiles are reported before the launch
  bool consumer = false;  // a thread that waits for rows in random order
  bool in_place = false;
  double tolerance = 0;  // how far an element may be off; 0: no bit
  uint64_t seed = 1;
  std::vector<int> hosts = {};  // see run_ranks()
  std::string emulate = {};     // Config::emulate
};

// One rank's part of a load.
template <class T>
class Worker {
 public:
  Worker(const Load& load, FusedOperator& op) : Worker(load, op, op.description().mapping) {}
  // `mapping`: whose order of additions the plan has.
  Worker(const Load& load, FusedOperator& op, Mapping mapping)
      : load_(load),
        op_(op),
        d_(op.description()),
        mapping_(mapping),
        random_(load.seed * 100 + static_cast<uint64_t>(op.rank())),
        input_(d_, op.geometry().input_rows(), d_.input_ld),
        output_(d_, op.geometry().output_rows(), d_.output_ld) {}

  void run() {
    for (launch_ = 0; launch_ < load_.launches; ++launch_) {
      const bool tiled = d_.collective != Collective::kAllGather;
      if (!tiled) fill({0, input_.rows()}, {0, d_.cols});
      std::vector<std::pair<int64_t, int64_t>> reports =
          tiled ? shuffled() : decltype(shuffled())();
      const size_t before = load_.early ? reports.size() / 3 : 0;
      make(reports, 0, before);
      T* const out = load_.in_place ? input_.data() : output_.data();
      ASSERT_EQ(op_.launch(input_.data(), out).message(), "");
      std::thread consumer;
      if (load_.consumer) consumer = std::thread([&] { consume(); });
      make(reports, before, reports.size());
      ASSERT_EQ(op_.wait().message(), "");
      if (consumer.joinable()) consumer.join();
      check({0, output_.rows()});
      EXPECT_TRUE(input_.room_is_untouched());
      EXPECT_TRUE(output_.room_is_untouched());
    }
  }

 private:
  // Tiles in random order, each as often as it has parts.
  std::vector<std::pair<int64_t, int64_t>> shuffled() {
    const TileGrid grid{d_.rows, d_.cols, d_.tile_rows, d_.tile_cols};
    std::vector<std::pair<int64_t, int64_t>> tiles;
    for (int64_t i = 0; i < grid.tiles() * d_.parts; ++i) {
      const int64_t tile = i / d_.parts;
      tiles.emplace_back(tile / grid.across(), tile % grid.across());
    }
    std::shuffle(tiles.begin(), tiles.end(), random_);
    return tiles;
  }

  void fill(RowRange rows, RowRange cols) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = cols.begin; c < cols.end; ++c)
        input_.at(r, c) = element<T>(op_.rank(), launch_, r, c);
    }
  }

  // The first part of a tile that comes stores it all: splits of K are sums that the kernel makes.
  void make(const std::vector<std::pair<int64_t, int64_t>>& tiles, size_t first, size_t last) {
    std::vector<std::thread> threads;
    for (int t = 0; t < load_.threads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = first + static_cast<size_t>(t); i < last;
             i += static_cast<size_t>(load_.threads)) {
          const auto [row, col] = tiles[i];
          const bool stores = std::find(tiles.begin(), tiles.begin() + i, tiles[i]) ==
                              tiles.begin() + static_cast<int64_t>(i);
          if (stores)
            fill({row * d_.tile_rows, std::min(d_.rows, (row + 1) * d_.tile_rows)},
                 {col * d_.tile_cols, std::min(d_.cols, (col + 1) * d_.tile_cols)});
          EXPECT_EQ(op_.tile_done(row, col).message(), "");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void consume() {
    std::mt19937_64 random(load_.seed);
    for (int i = 0; i < 5 && output_.rows() > 0; ++i) {
      const int64_t first = static_cast<int64_t>(random() % static_cast<uint64_t>(output_.rows()));
      const int64_t count =
          1 + static_cast<int64_t>(random() % static_cast<uint64_t>(output_.rows() - first));
      ASSERT_EQ(op_.rows_wait(first, count).message(), "");
      check({first, first + count});
    }
  }

  T sum(int owner, int64_t row, int64_t col) const {
    const int n = load_.ranks;
    const int first = mapping_ == Mapping::kRing ? owner + 1 : 0;
    T total = element<T>(first % n, launch_, row, col);
    for (int i = 1; i < n; ++i) total = total + element<T>((first + i) % n, launch_, row, col);
    return total;
  }

  T expected(int64_t row, int64_t col) const {
    const Geometry& geometry = op_.geometry();
    const int64_t block = geometry.block_rows();
    switch (d_.collective) {
      case Collective::kReduceScatter:
        return sum(op_.rank(), geometry.owned(op_.rank()).begin + row, col);
      case Collective::kAllReduce:
        return sum(geometry.output().chunk_of(row) / d_.chunks, row, col);
      case Collective::kAllGather:
        return element<T>(static_cast<int>(row / block), launch_, row % block, col);
      default:
        return element<T>(static_cast<int>(row / block), launch_, op_.rank() * block + row % block,
                          col);
    }
  }

  void check(RowRange rows) {
    Padded<T>& out = load_.in_place ? input_ : output_;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = 0; c < d_.cols; ++c) {
        const T want = expected(r, c), got = out.at(r, c);
        const bool near =
            std::abs(static_cast<double>(got) - static_cast<double>(want)) <= load_.tolerance;
        ASSERT_TRUE(std::memcmp(&got, &want, sizeof(T)) == 0 || (load_.tolerance > 0 && near))
            << "rank " << op_.rank() << " launch " << launch_ << " row " << r << " col " << c
            << ": " << got << " instead of " << want;
      }
    }
  }

  const Load& load_;
  FusedOperator& op_;
  const FusedDescription& d_;
  Mapping mapping_;
  std::mt19937_64 random_;
  Padded<T> input_, output_;
  int launch_ = 0;
};

inline HostCommunicator& host_rank(Communicator& comm) {
  return static_cast<HostCommunicator&>(comm);
}

inline std::unique_ptr<FusedOperator> make_operator(Communicator& comm,
                                                    const FusedDescription& description) {
  Result<std::unique_ptr<FusedOperator>> op = FusedOperator::create(host_rank(comm), description);
  EXPECT_TRUE(op.ok()) << op.status().message();
  return op.ok() ? std::move(op).value() : nullptr;
}

template <class T>
constexpr DataType type_of() {
  if constexpr (std::is_same_v<T, double>) return DataType::kFloat64;
  return std::is_same_v<T, float> ? DataType::kFloat32 : DataType::kInt32;
}

template <class T>
void run_load(Load load) {
  load.description.type = type_of<T>();
  const auto work = [&](Communicator& comm) {
    const auto op = make_operator(comm, load.description);
    ASSERT_NE(op, nullptr);
    Worker<T>(load, *op).run();
    EXPECT_EQ(op->close().message(), "");
  };
  CommOptions options = quick_options();
  options.config.emulate = load.emulate;
  run_ranks(load.ranks, options, work, load.hosts);
}

}  // namespace tessera::test
