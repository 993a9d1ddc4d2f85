#include "base/types.h"

#include <array>

namespace tessera {

const char* to_string(DataType type) {
  static constexpr std::array<const char*, kDataTypes> names = {
      "int8",    "uint8",   "int32",   "uint32",   "int64",       "uint64",
      "float16", "float32", "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return names[static_cast<size_t>(type)];
}

const char* to_string(ReduceOp op) {
  static constexpr std::array<const char*, 6> names = {"sum", "prod", "max",
                                                       "min", "avg",  "premulsum"};
  return names[static_cast<size_t>(op)];
}

const char* to_string(Collective collective) {
  static constexpr std::array<const char*, kCollectives> names = {
      "all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter",
      "all-to-all", "gather", "scatter",   "send-recv",  "barrier"};
  return names[static_cast<size_t>(collective)];
}

}  // namespace tessera
