// A matrix in memory, and how its elements become floats.
// Thread safety: pure functions; writes to what a view shows are the caller's affair.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>

namespace tessera::gemm {

struct View {
  char* base = nullptr;
  int64_t ld = 0;
  bool row_major = true;
  ncclDataType_t type = ncclFloat;

  size_t element_bytes() const { return type == ncclFloat ? 4 : 2; }
  char* at(int64_t row, int64_t col) const {
    return base +
           static_cast<size_t>(row_major ? row * ld + col : col * ld + row) * element_bytes();
  }
  View transposed() const { return {base, ld, !row_major, type}; }
  View from(int64_t row, int64_t col) const { return {at(row, col), ld, row_major, type}; }
};

// to := from * scale, rows x cols elements, converted as the types say: to nearest, ties to even.
void copy(const View& to, const View& from, int64_t rows, int64_t cols, float scale);

}  // namespace tessera::gemm
