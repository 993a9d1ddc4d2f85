// One rank's product, made in blocks by OpenBLAS.
// Thread safety: multiply() from any number of threads, on blocks that do not overlap.
#pragma once

#include <vector>

#include "gemm/view.h"

namespace tessera::gemm {

// Rows [row, row + rows) and columns [col, col + cols).
struct Block {
  int64_t row, rows, col, cols;
};

class Product {
 public:
  // op(A) and op(B) as they are multiplied. `a` may be filled later (a_later): then 16-bit rows of
  // it are converted block by block, else once here.
  Product(const View& a, const View& b, int64_t m, int64_t n, int64_t k, float alpha, bool a_later);

  // to := alpha * block of the product + beta * prior, where `to` and `prior` show the block. They
  // may be the same. `prior` is not read when beta is 0.
  void multiply(const Block& block, const View& to, float beta, const View& prior) const;

 private:
  void multiply_floats(const Block& block, const View& a, float* to, int64_t ld, bool row_major,
                       float beta) const;

  View a_, b_;
  int64_t k_;
  float alpha_;
  std::vector<float> wide_a_, wide_b_;
};

}  // namespace tessera::gemm
