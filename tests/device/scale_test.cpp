// Pre-scales, divisors and reciprocals: what Avg and PreMulSum are made of.
#include <gtest/gtest.h>

#include <optional>

#include "device/fixtures.h"
#include "device/guarded.h"
#include "device/reference.h"

namespace tessera {
namespace {

void check(DataType type, const std::vector<std::vector<uint8_t>>& sources,
           const std::vector<std::optional<uint64_t>>& scales, int64_t divisor) {
  std::vector<std::vector<uint8_t>> stored(scales.size());
  std::vector<const void*> pointers(scales.size(), nullptr);
  for (size_t j = 0; j < scales.size(); ++j) {
    if (!scales[j]) continue;
    stored[j] = testing::packed(type, {*scales[j]});
    pointers[j] = stored[j].data();
  }
  std::vector<uint64_t> want;
  for (size_t i = 0; i < sources[0].size(); i += size_of(type)) {
    std::vector<uint64_t> column;
    for (const auto& source : sources) column.push_back(reference::load(type, source.data() + i));
    want.push_back(reference::reduce(type, ReduceOp::kSum, column, scales, divisor));
  }
  for (const int64_t set : testing::instruction_sets()) {
    const testing::WithInstructionSet chosen(set);
    const auto got = testing::run(type, ReduceOp::kSum, sources, pointers, divisor);
    for (size_t i = 0; i < want.size(); ++i) {
      const uint64_t raw = reference::load(type, got.data() + i * size_of(type));
      ASSERT_TRUE(reference::same(type, raw, want[i]))
          << to_string(type) << " on " << hwy::TargetName(set) << ", element " << i << " of "
          << want.size() << ": " << testing::describe(type, raw) << ", expected "
          << testing::describe(type, want[i]);
    }
  }
}

class Scales : public ::testing::TestWithParam<DataType> {
 protected:
  std::vector<std::vector<uint8_t>> sources(int number, size_t count) {
    std::vector<std::vector<uint8_t>> result;
    for (int j = 0; j < number; ++j)
      result.push_back(testing::random_elements(type, count, random));
    return result;
  }
  const DataType type = GetParam();
  std::mt19937_64 random{23};
};

// A product fused with the sum that follows would not be rounded.
TEST_P(Scales, EachProductIsRoundedToTheTypeBeforeItIsAdded) {
  for (const int number : {1, 2, 3, 8}) {
    for (const size_t count : {1, 2, 5, 33, 700}) {
      const std::vector<std::optional<uint64_t>> scales(static_cast<size_t>(number),
                                                        testing::random_element(type, random));
      ASSERT_NO_FATAL_FAILURE(check(type, sources(number, count), scales, 1));
    }
  }
}

TEST_P(Scales, EachSourceHasItsOwnScaleOrNone) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::optional<uint64_t>> scales;
    for (int j = 0; j < 4; ++j) {
      scales.emplace_back();
      if (random() % 3 != 0) scales.back() = testing::random_element(type, random);
    }
    ASSERT_NO_FATAL_FAILURE(check(type, sources(4, 65), scales, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, Scales, ::testing::ValuesIn(testing::all_types()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

class Divisors : public ::testing::TestWithParam<DataType> {};

TEST_P(Divisors, QuotientsAreRoundedTowardsZero) {
  const DataType type = GetParam();
  std::mt19937_64 random(29);
  for (const int64_t divisor : {2L, 3L, 7L, 8L, 100L, 127L, 1000L, 65536L, 2147483647L}) {
    for (const size_t count : {1, 3, 64, 5000}) {
      const std::vector<std::vector<uint8_t>> sources = {
          testing::random_elements(type, count, random),
          testing::random_elements(type, count, random),
          testing::random_elements(type, count, random)};
      ASSERT_NO_FATAL_FAILURE(check(type, sources, {}, divisor)) << "divisor " << divisor;
    }
  }
}

TEST_P(Divisors, TheLastIntegersOfTheTypeDivideExactly) {
  const DataType type = GetParam();
  const int bits = 8 * static_cast<int>(size_of(type));
  std::vector<uint64_t> raws;
  for (uint64_t i = 0; i < 40; ++i) {
    raws.push_back(i);
    raws.push_back((uint64_t{1} << (bits - 1)) - i);
    raws.push_back((uint64_t{1} << (bits - 1)) + i);
    raws.push_back(~i);
  }
  const std::vector<std::vector<uint8_t>> sources = {
      testing::packed(type, raws), testing::packed(type, std::vector<uint64_t>(raws.size(), 0))};
  for (int64_t divisor = 2; divisor < 50; ++divisor)
    ASSERT_NO_FATAL_FAILURE(check(type, sources, {}, divisor)) << "divisor " << divisor;
}

TEST_P(Divisors, EveryDstHoldsTheQuotientAlsoInPlace) {
  const DataType type = GetParam();
  constexpr size_t kCount = 3000;
  const std::vector<uint8_t> twelve = testing::packed(type, std::vector<uint64_t>(kCount, 12));
  std::vector<uint8_t> a = testing::packed(type, std::vector<uint64_t>(kCount, 30));
  std::vector<uint8_t> b(a.size());
  const void* srcs[] = {a.data(), twelve.data()};
  void* dsts[] = {a.data(), b.data()};
  host::reduce_kernel(type, ReduceOp::kSum)({dsts, 2, srcs, 2, nullptr, kCount, 4});
  const std::vector<uint8_t> want = testing::packed(type, std::vector<uint64_t>(kCount, 10));
  EXPECT_EQ(a, want);
  EXPECT_EQ(b, want);
}

INSTANTIATE_TEST_SUITE_P(Reduce, Divisors,
                         ::testing::Values(DataType::kInt8, DataType::kUint8, DataType::kInt32,
                                           DataType::kUint32, DataType::kInt64, DataType::kUint64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Reciprocal, IsTheValueOfTheTypeNearestToOneOverN) {
  for (int n = 1; n <= 2048; ++n) {
    for (const DataType type :
         {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8E4M3, DataType::kFloat8E5M2}) {
      uint8_t scale[8] = {};
      host::reciprocal(type, n, scale);
      const uint32_t want = reference::converter(type).encode(1.0f / static_cast<float>(n));
      ASSERT_EQ(reference::load(type, scale), want) << to_string(type) << " 1/" << n;
    }
    float single = 0;
    host::reciprocal(DataType::kFloat32, n, &single);
    ASSERT_EQ(single, 1.0f / static_cast<float>(n));
    double twice = 0;
    host::reciprocal(DataType::kFloat64, n, &twice);
    ASSERT_EQ(twice, 1.0 / n);
  }
}

}  // namespace
}  // namespace tessera
