// Data types, reduction operations and collectives as the library knows them below the C API.
// The numbers of DataType and ReduceOp equal those of NCCL 2.28.9's enums, so that api/ converts by
// a checked cast.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

enum class DataType : uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8E4M3 = 10,
  kFloat8E5M2 = 11,
};
inline constexpr int kDataTypes = 12;

enum class ReduceOp : uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4, kPreMulSum = 5 };

enum class Collective : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,  // two ranks: 0 sends its input, 1 receives it as output
  kBarrier,   // no data
};
inline constexpr int kCollectives = 10;

constexpr size_t size_of(DataType type) {
  constexpr size_t sizes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[static_cast<int>(type)];
}

const char* to_string(DataType type);          // "float32"
const char* to_string(ReduceOp op);            // "sum"
const char* to_string(Collective collective);  // "all-reduce"

constexpr bool has_root(Collective c) {
  return c == Collective::kReduce || c == Collective::kBroadcast || c == Collective::kGather ||
         c == Collective::kScatter;
}
constexpr bool reduces(Collective c) {
  return c == Collective::kAllReduce || c == Collective::kReduce || c == Collective::kReduceScatter;
}

}  // namespace tessera
