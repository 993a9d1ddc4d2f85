// Conversions of the small floating types, seen through the kernels: every value, and every way to
// round.
#include <gtest/gtest.h>

#include <cmath>

#include "device/fixtures.h"
#include "device/guarded.h"
#include "device/reference.h"

namespace tessera {
namespace {

std::vector<uint64_t> all_values(DataType type) {
  std::vector<uint64_t> values(size_t{1} << (8 * size_of(type)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = i;
  return values;
}

// Combines every value with the other operands, on every instruction set.
void check(DataType type, ReduceOp op, const std::vector<uint64_t>& others) {
  const std::vector<uint64_t> values = all_values(type);
  std::vector<std::vector<uint8_t>> sources = {testing::packed(type, values)};
  for (const uint64_t other : others)
    sources.push_back(testing::packed(type, std::vector<uint64_t>(values.size(), other)));
  std::vector<uint64_t> want;
  for (const uint64_t value : values) {
    std::vector<uint64_t> column = {value};
    column.insert(column.end(), others.begin(), others.end());
    want.push_back(reference::reduce(type, op, column));
  }
  for (const int64_t set : testing::instruction_sets()) {
    const testing::WithInstructionSet chosen(set);
    const std::vector<uint8_t> got = testing::run(type, op, sources);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t raw = reference::load(type, got.data() + i * size_of(type));
      ASSERT_TRUE(reference::same(type, raw, want[i]))
          << hwy::TargetName(set) << ": " << to_string(op) << " of "
          << testing::describe(type, values[i]) << " and " << testing::describe(type, others[0])
          << " is " << testing::describe(type, raw) << ", expected "
          << testing::describe(type, want[i]);
    }
  }
}

class SmallFloats : public ::testing::TestWithParam<DataType> {
 protected:
  const DataType type = GetParam();
  const reference::SmallFloat format = *reference::small_float(type);
  const reference::Converter& convert = reference::converter(type);
  // Bits of the smallest normal value, and from one power of two to the next that is tried: all, or
  // every seventh of the many of bfloat16 (with all 65536 values next to them, each place of the
  // middle still occurs).
  const uint64_t one_place = uint64_t{1} << format.mantissa;
  const uint64_t stride = format.exponent == 8 ? 7 * one_place : one_place;
};

TEST_P(SmallFloats, EveryValueSurvivesTheAdditionOfNegativeZero) {
  const std::vector<uint64_t> values = all_values(type);
  const std::vector<std::vector<uint8_t>> sources = {
      testing::packed(type, values),
      testing::packed(type, std::vector<uint64_t>(values.size(), format.sign()))};
  for (const int64_t set : testing::instruction_sets()) {
    const testing::WithInstructionSet chosen(set);
    const std::vector<uint8_t> got = testing::run(type, ReduceOp::kSum, sources);
    for (const uint64_t value : values) {
      const uint64_t raw = reference::load(type, got.data() + value * size_of(type));
      const float decoded = convert.decode(static_cast<uint32_t>(value));
      if (std::isnan(decoded)) {
        ASSERT_TRUE(std::isnan(reference::as_double(type, raw))) << "bits " << value;
      } else if (std::isinf(decoded) && format.saturates) {
        ASSERT_EQ(raw, (value & format.sign()) | (format.finite_end() - 1));
      } else {
        ASSERT_EQ(raw, value) << hwy::TargetName(set);
      }
    }
  }
}

TEST_P(SmallFloats, OneSourceKeepsItsBitsNaNsIncluded) {
  const std::vector<uint8_t> values = testing::packed(type, all_values(type));
  for (const int64_t set : testing::instruction_sets()) {
    const testing::WithInstructionSet chosen(set);
    EXPECT_EQ(testing::run(type, ReduceOp::kSum, {values}), values);
    EXPECT_EQ(testing::run(type, ReduceOp::kMax, {values}, {nullptr}), values);
  }
}

// A power of two next to every value lands on and around the middle between neighbours at some
// exponent.
TEST_P(SmallFloats, SumsRoundToTheNearestAndTiesToEven) {
  for (uint64_t power = one_place; power < format.finite_end(); power += stride) {
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kSum, {power}));
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kSum, {power | format.sign(), 1}));
  }
}

TEST_P(SmallFloats, ProductsRoundCorrectlyDownToTheSmallestSubnormal) {
  for (uint64_t power = 0; power < format.finite_end(); power += stride) {
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kProd, {power}));
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kProd, {power + one_place / 2}));
  }
}

TEST_P(SmallFloats, OverflowNaNAndInfinityFollowTheFormat) {
  const uint64_t largest = format.finite_end() - 1;
  for (const uint64_t other : {largest, largest | format.sign(), uint64_t{format.finite_end()},
                               uint64_t{format.sign() - 1}, uint64_t{1}}) {
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kSum, {other}));
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kSum, {other, other, other}));
    ASSERT_NO_FATAL_FAILURE(check(type, ReduceOp::kProd, {other}));
  }
}

INSTANTIATE_TEST_SUITE_P(Rounding, SmallFloats,
                         ::testing::Values(DataType::kFloat16, DataType::kBfloat16,
                                           DataType::kFloat8E4M3, DataType::kFloat8E5M2),
                         [](const auto& info) { return std::string(to_string(info.param)); });

class Fp8 : public ::testing::TestWithParam<DataType> {};

TEST_P(Fp8, AllPairsAgreeWithTheReference) {
  for (uint64_t other = 0; other < 256; ++other) {
    ASSERT_NO_FATAL_FAILURE(check(GetParam(), ReduceOp::kSum, {other}));
    ASSERT_NO_FATAL_FAILURE(check(GetParam(), ReduceOp::kProd, {other}));
  }
}

INSTANTIATE_TEST_SUITE_P(Rounding, Fp8,
                         ::testing::Values(DataType::kFloat8E4M3, DataType::kFloat8E5M2),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Rounding, ManySourcesRoundOnceAtTheEnd) {
  // 2048 + 1 rounds back to 2048 in float16, so that rounding after each source would lose all
  // ones.
  std::vector<std::vector<uint8_t>> sources = {testing::packed(DataType::kFloat16, {0x6800})};
  for (int j = 0; j < 64; ++j) sources.push_back(testing::packed(DataType::kFloat16, {0x3C00}));
  EXPECT_EQ(testing::run(DataType::kFloat16, ReduceOp::kSum, sources),
            testing::packed(DataType::kFloat16, {0x6820}));  // 2112
}

}  // namespace
}  // namespace tessera
