// The library's own products (tessera/gemm.h), each fused, unfused, and as it decides by itself.
// Thread safety: one cell at a time, as cell.h.
#pragma once

#include <string>
#include <vector>

#include "fused/cell.h"
#include "fused/table.h"

namespace perf::fused {

// "float", "half" or "bfloat16"; the program has checked the name.
ncclDataType_t type_named(const std::string& name);

// Of one product in one type: a row that compares fused with unfused, and one that compares what the
// library decided, for each operator.
std::vector<Row> measure_operators(const Setup& setup, const CellOptions& options,
                                   const std::string& type);

}  // namespace perf::fused
