// Element types and reduction operations by the names and numbers that nccl-tests uses.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace tessera::perf {

struct ElementType {
  const char* name;
  ncclDataType_t nccl;
  size_t size;  // bytes
  bool integer;
};
std::span<const ElementType> element_types();
const ElementType* find_type(std::string_view name);  // null: unknown

enum class OpKind { kSum, kProd, kMin, kMax, kAvg, kMulSum };

struct Operation {
  const char* name;
  OpKind kind;
  ncclRedOp_t nccl;  // for kMulSum: a fresh operation is made for every call
};
std::span<const Operation> operations();
const Operation* find_operation(std::string_view name);

}  // namespace tessera::perf
