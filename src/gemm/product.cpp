#include "gemm/product.h"

#include <cblas.h>

namespace tessera::gemm {
namespace {

// Dense floats of a matrix, and the view of them.
View widen(const View& from, int64_t rows, int64_t cols, std::vector<float>* floats) {
  floats->resize(static_cast<size_t>(rows * cols));
  const View wide{reinterpret_cast<char*>(floats->data()), cols, true, ncclFloat};
  copy(wide, from, rows, cols, 1);
  return wide;
}

const float* floats(const View& view) { return reinterpret_cast<const float*>(view.base); }

}  // namespace

Product::Product(const View& a, const View& b, int64_t m, int64_t n, int64_t k, float alpha,
                 bool a_later)
    : a_(a), b_(b), k_(k), alpha_(alpha) {
  if (b.type != ncclFloat) b_ = widen(b, k, n, &wide_b_);
  if (a.type != ncclFloat && !a_later) a_ = widen(a, m, k, &wide_a_);
}

void Product::multiply_floats(const Block& block, const View& a, float* to, int64_t ld,
                              bool row_major, float beta) const {
  const View b = b_.from(0, block.col);
  // An operand stored the other way round than the result counts as transposed.
  cblas_sgemm(row_major ? CblasRowMajor : CblasColMajor,
              a.row_major == row_major ? CblasNoTrans : CblasTrans,
              b.row_major == row_major ? CblasNoTrans : CblasTrans,
              static_cast<blasint>(block.rows), static_cast<blasint>(block.cols),
              static_cast<blasint>(k_), alpha_, floats(a), static_cast<blasint>(a.ld), floats(b),
              static_cast<blasint>(b.ld), beta, to, static_cast<blasint>(ld));
}

void Product::multiply(const Block& block, const View& to, float beta, const View& prior) const {
  if (block.rows == 0 || block.cols == 0) return;
  View a = a_.from(block.row, 0);
  std::vector<float> wide;
  if (a.type != ncclFloat) a = widen(a, block.rows, k_, &wide);
  if (to.type == ncclFloat) {
    if (beta != 0 && to.base != prior.base) copy(to, prior, block.rows, block.cols, 1);
    multiply_floats(block, a, reinterpret_cast<float*>(to.base), to.ld, to.row_major, beta);
    return;
  }
  std::vector<float> sum(static_cast<size_t>(block.rows * block.cols));
  const View result{reinterpret_cast<char*>(sum.data()), block.cols, true, ncclFloat};
  if (beta != 0) copy(result, prior, block.rows, block.cols, beta);
  multiply_floats(block, a, sum.data(), block.cols, true, beta != 0 ? 1.0F : 0.0F);
  copy(to, result, block.rows, block.cols, 1);
}

}  // namespace tessera::gemm
