// Inputs of reductions for tests, and calls of kernels on vectors of raw elements.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/types.h"
#include "device/host/reduce.h"
#include "device/reference.h"

namespace tessera::testing {

inline constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                    ReduceOp::kMin};

inline std::vector<DataType> all_types() {
  std::vector<DataType> types;
  for (int t = 0; t < kDataTypes; ++t) types.push_back(static_cast<DataType>(t));
  return types;
}

// Any bits for integers; for floats any bits but NaN, mixed with values near one, which do not lose
// themselves in sums.
inline uint64_t random_element(DataType type, std::mt19937_64& random) {
  const uint64_t any = random();
  const bool near_one = (random() & 1) != 0;
  const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(any)) * 0x1p-63,
                                  static_cast<int>(random() % 6) - 2);
  if (type == DataType::kFloat32 && near_one)
    return reference::bits_as<uint64_t>(static_cast<float>(value));
  if (type == DataType::kFloat64 && near_one) return reference::bits_as<uint64_t>(value);
  if (reference::small_float(type) && near_one)
    return reference::converter(type).encode(static_cast<float>(value));
  const int unused = 64 - 8 * static_cast<int>(size_of(type));
  const uint64_t raw = any << unused >> unused;
  if (!reference::is_integer(type) && std::isnan(reference::as_double(type, raw))) return 0;
  return raw;
}

inline std::vector<uint8_t> random_elements(DataType type, size_t count, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(count * size_of(type));
  for (size_t i = 0; i < count; ++i)
    reference::store(type, random_element(type, random), bytes.data() + i * size_of(type));
  return bytes;
}

// Packs raw elements.
inline std::vector<uint8_t> packed(DataType type, const std::vector<uint64_t>& raws) {
  std::vector<uint8_t> bytes(raws.size() * size_of(type));
  for (size_t i = 0; i < raws.size(); ++i)
    reference::store(type, raws[i], bytes.data() + i * size_of(type));
  return bytes;
}

inline std::string describe(DataType type, uint64_t raw) {
  if (reference::is_integer(type)) return std::to_string(reference::extended(type, raw));
  return fmt::format("{} (bits {:#x})", reference::as_double(type, raw), raw);
}

// One dst, sources of equal length.
inline std::vector<uint8_t> run(DataType type, ReduceOp op,
                                const std::vector<std::vector<uint8_t>>& sources,
                                const std::vector<const void*>& scales = {}, int64_t divisor = 1) {
  std::vector<const void*> srcs;
  for (const auto& source : sources) srcs.push_back(source.data());
  std::vector<uint8_t> result(sources[0].size());
  void* dst = result.data();
  host::reduce_kernel(
      type, op)({&dst, 1, srcs.data(), static_cast<int>(srcs.size()),
                 scales.empty() ? nullptr : scales.data(), result.size() / size_of(type), divisor});
  return result;
}

}  // namespace tessera::testing
