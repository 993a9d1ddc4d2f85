// Exact inputs and expected results, element by element.
//
// Inputs of reductions are chosen so that the result is exact in the type in any order of
// combination: integers wrap; sums of floats are small integers whose magnitudes add up to at most
// 2^digits; products are powers of two with at most one other mantissa; minimum and maximum use any
// finite pattern. So results are compared bit by bit. The one exception is the average of floats
// over a rank count that is no power of two, where 1/n is not exact: one rank contributes to each
// element, and 2 units in the last place are allowed. Data movement uses arbitrary bit patterns.
//
// All functions are pure; `seed` changes all values. Indices are element indices within a rank's
// send buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/types.h"

namespace tessera::perf {

struct Recipe {
  const ElementType* type = nullptr;
  const Operation* op = nullptr;  // null: data movement
  int ranks = 1;
  uint64_t seed = 0;
};

// Writes elements [first, first + count) of `rank`'s input to `out`, which needs no alignment.
void fill_input(const Recipe& recipe, int rank, size_t first, size_t count, void* out);

// The same for the reduction of all ranks' inputs.
void fill_reduced(const Recipe& recipe, size_t first, size_t count, void* out);

// The factor of kMulSum on `rank`: its bits in the type, in the low bytes.
uint64_t mulsum_scalar(const ElementType& type, int rank);

// Elements that differ by more than the recipe allows.
size_t count_wrong(const Recipe& recipe, const void* got, const void* expected, size_t count);

}  // namespace tessera::perf
