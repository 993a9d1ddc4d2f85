// The host's space for plans whose elements are rows of matrices: user buffers are matrices of any
// layout and leading dimension, slots hold compact runs of rows.
//
// In a slot, a run of rows of a row-major matrix lies row after row; of a column-major one, column
// after column, each as long as the run. Rows beyond a matrix's end do not exist: what a plan says
// about them moves nothing.
// With remote stores (description.h) some chunks of the input that are copied to slots are in the
// slots already: such copies move nothing. Where they add onto peers (onto.h), nothing that reads the
// input does.
// Thread safety: one thread at a time.
#pragma once

#include <vector>

#include "exec/host_space.h"
#include "fusion/description.h"

namespace tessera {

class Onto;

// A user's matrix.
struct Matrix {
  std::byte* base = nullptr;
  size_t line_bytes = 0;  // from one row (column major: column) to the next
  int64_t rows = 0;
};

class MatrixSpace : public HostSpace {
 public:
  // Linear memory, or a position in a matrix as the plan counts it: in bytes of compact rows.
  struct Place {
    const Matrix* matrix = nullptr;
    uintptr_t offset = 0;  // the address, where there is no matrix
    Place operator+(size_t bytes) const { return {matrix, offset + bytes}; }
  };

  // `chunk_rows`: of every chunk, where there are remote stores.
  // `onto`: null, or how kernels add to the peer's output.
  MatrixSpace(const FusedDescription& description, size_t chunk_rows, uint32_t max_operands,
              Onto* onto);

  void bind(const MemberWay* ways, bool ported, const Reduction& reduction);

  Place place(void* pointer) const { return {nullptr, reinterpret_cast<uintptr_t>(pointer)}; }
  Place* places() { return places_.data(); }
  // `elements` of the operands are rows.
  bool combine(const Operands<Place>& operands);

 private:
  // An operand as lines that lie `step` bytes apart.
  struct Lines {
    std::byte* first;
    size_t step;
  };
  Lines lines_of(const Place& place, int64_t rows) const;
  int64_t existing_rows(const Operands<Place>& operands) const;
  bool reduces(const Operands<Place>& operands) const;
  bool stored_by_kernel(const Operands<Place>& operands) const;
  void move(const Operands<Place>& operands);
  void combine_lines(const Operands<Place>& operands, size_t line, size_t elements, bool reduce);

  size_t row_bytes_, element_bytes_;
  int64_t cols_;
  bool column_major_;
  uint64_t remote_chunks_;  // 0: none
  Onto* onto_;
  size_t chunk_bytes_, chunks_;
  Reduction reduction_;
  std::vector<Place> places_;
  std::vector<Lines> lines_;
  std::vector<void*> dsts_;
  std::vector<const void*> srcs_, scales_;
};

}  // namespace tessera
