// What a rank computes: a product C = A B in tiles or at once, by OpenBLAS on the calling thread; or
// a timer, which sleeps as long as the product would take, so that ranks without cores of their own
// keep their schedule.
//
// Timers come in two kinds. A device's goes on while reports of tiles are handled, a host's stands
// still meanwhile, as a thread that computes and communicates does.
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace perf::fused {

using Clock = std::chrono::steady_clock;

enum class Engine { kBlas, kDeviceTimer, kHostTimer };

// Rows [row, row + rows) and columns [col, col + cols) of C.
struct Block {
  int64_t row, rows, col, cols;
};

class Compute {
 public:
  virtual ~Compute() = default;
  // Begins a product: the next block follows at once.
  virtual void begin() = 0;
  virtual void make(const Block& block, float* to, int64_t ld, bool add) = 0;
  // Around what the thread does besides.
  virtual void pause() {}
  virtual void resume() {}
  // The next block's input is there now.
  virtual void arrived() {}
};

// `a`: m x k, `b`: k x n, row-major and dense. They outlive it.
std::unique_ptr<Compute> blas(const float* a, const float* b, int64_t n, int64_t k);
// A product of m x n that takes `us`.
std::unique_ptr<Compute> timer(int64_t m, int64_t n, double us, bool host);

}  // namespace perf::fused
