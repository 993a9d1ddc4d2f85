#include "common/types.h"

namespace tessera::perf {
namespace {

constexpr ElementType kTypes[] = {
    {"int8", ncclInt8, 1, true},          {"uint8", ncclUint8, 1, true},
    {"int32", ncclInt32, 4, true},        {"uint32", ncclUint32, 4, true},
    {"int64", ncclInt64, 8, true},        {"uint64", ncclUint64, 8, true},
    {"half", ncclFloat16, 2, false},      {"float", ncclFloat32, 4, false},
    {"double", ncclFloat64, 8, false},    {"bfloat16", ncclBfloat16, 2, false},
    {"f8e4m3", ncclFloat8e4m3, 1, false}, {"f8e5m2", ncclFloat8e5m2, 1, false},
};

constexpr Operation kOperations[] = {
    {"sum", OpKind::kSum, ncclSum}, {"prod", OpKind::kProd, ncclProd},
    {"max", OpKind::kMax, ncclMax}, {"min", OpKind::kMin, ncclMin},
    {"avg", OpKind::kAvg, ncclAvg}, {"mulsum", OpKind::kMulSum, ncclNumOps},
};

}  // namespace

std::span<const ElementType> element_types() { return kTypes; }
std::span<const Operation> operations() { return kOperations; }

const ElementType* find_type(std::string_view name) {
  for (const ElementType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

const Operation* find_operation(std::string_view name) {
  for (const Operation& op : kOperations) {
    if (name == op.name) return &op;
  }
  return nullptr;
}

}  // namespace tessera::perf
