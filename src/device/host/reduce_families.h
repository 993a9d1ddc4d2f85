// Kernels by family of types; each family is one translation unit, compiled once per instruction
// set. Used by reduce.cpp only.
#pragma once

#include "device/host/reduce.h"

namespace tessera::host {

ReduceFn reduce_integer8(DataType type, ReduceOp op);
ReduceFn reduce_integer32(DataType type, ReduceOp op);
ReduceFn reduce_integer64(DataType type, ReduceOp op);
ReduceFn reduce_float(DataType type, ReduceOp op);  // float32, float64
ReduceFn reduce_half(DataType type, ReduceOp op);   // float16, bfloat16
ReduceFn reduce_fp8(DataType type, ReduceOp op);

}  // namespace tessera::host
