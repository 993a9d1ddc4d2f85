// The claim of perf/common/verify.h: inputs are exact in their type in any order of combination.
#include "common/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/numeric.h"

namespace tessera::perf {
namespace {

// Combines in the type itself, rounding after every step, in the given order of ranks.
template <class F>
typename F::Bits combine_in_type(const Recipe& recipe, size_t index,
                                 const std::vector<int>& order) {
  const OpKind kind = recipe.op->kind;
  const auto input = [&](int rank) {
    typename F::Bits bits;
    fill_input(recipe, rank, index, 1, &bits);
    double value = F::decode(bits);
    if (kind == OpKind::kMulSum) {
      value *= F::decode(static_cast<typename F::Bits>(mulsum_scalar(*recipe.type, rank)));
    }
    if (kind == OpKind::kAvg) value *= F::decode(F::encode(1.0 / recipe.ranks));
    return F::encode(value);
  };
  typename F::Bits total = input(order[0]);
  for (size_t i = 1; i < order.size(); ++i) {
    const double a = F::decode(total), b = F::decode(input(order[i]));
    switch (kind) {
      case OpKind::kProd:
        total = F::encode(a * b);
        break;
      case OpKind::kMin:
        total = F::encode(std::min(a, b));
        break;
      case OpKind::kMax:
        total = F::encode(std::max(a, b));
        break;
      default:
        total = F::encode(a + b);
    }
  }
  return total;
}

template <class F>
void expect_exact(const char* type_name) {
  std::mt19937 random(1);
  for (const Operation& op : operations()) {
    for (const int ranks : {1, 2, 3, 4, 7, 8, 16, 33}) {
      const Recipe recipe{find_type(type_name), &op, ranks, 5};
      std::vector<int> order(static_cast<size_t>(ranks));
      std::iota(order.begin(), order.end(), 0);
      constexpr size_t kCount = 200;
      std::vector<typename F::Bits> got(kCount), expected(kCount);
      fill_reduced(recipe, 0, kCount, expected.data());
      for (size_t i = 0; i < kCount; ++i) {
        std::shuffle(order.begin(), order.end(), random);
        got[i] = combine_in_type<F>(recipe, i, order);
      }
      EXPECT_EQ(count_wrong(recipe, got.data(), expected.data(), kCount), 0u)
          << type_name << " " << op.name << " ranks " << ranks;
    }
  }
}

TEST(Verify, HalfResultsAreExactInAnyOrder) { expect_exact<Half>("half"); }
TEST(Verify, Bfloat16ResultsAreExactInAnyOrder) { expect_exact<Bfloat16>("bfloat16"); }
TEST(Verify, FloatResultsAreExactInAnyOrder) { expect_exact<Float32>("float"); }
TEST(Verify, DoubleResultsAreExactInAnyOrder) { expect_exact<Float64>("double"); }
TEST(Verify, E4M3ResultsAreExactInAnyOrder) { expect_exact<Float8E4M3>("f8e4m3"); }
TEST(Verify, E5M2ResultsAreExactInAnyOrder) { expect_exact<Float8E5M2>("f8e5m2"); }

template <class F>
void expect_round_trip() {
  for (uint32_t pattern = 0; pattern < (1u << (8 * sizeof(typename F::Bits))); ++pattern) {
    const auto bits = static_cast<typename F::Bits>(pattern);
    if (!F::finite(bits)) continue;
    ASSERT_EQ(F::encode(F::decode(bits)), bits) << pattern;
  }
}

TEST(Numeric, EveryFinitePatternSurvivesDecodingAndEncoding) {
  expect_round_trip<Half>();
  expect_round_trip<Bfloat16>();
  expect_round_trip<Float8E4M3>();
  expect_round_trip<Float8E5M2>();
}

TEST(Numeric, EncodingRoundsToNearestAndTiesToEven) {
  EXPECT_EQ(Half::encode(1.0 + 1.0 / 2048), 0x3c00);  // a tie: down to even
  EXPECT_EQ(Half::encode(1.0 + 3.0 / 2048), 0x3c02);  // a tie: up to even
  EXPECT_EQ(Half::encode(1.0 + 1.1 / 2048), 0x3c01);
  EXPECT_EQ(Float8E4M3::encode(448.0), 0x7e);
  EXPECT_EQ(Float8E5M2::encode(-1.5), 0xbe);
  EXPECT_EQ(Bfloat16::encode(-2.0), 0xc000);
}

TEST(Verify, EveryRankContributesToReductions) {
  for (const ElementType& type : element_types()) {
    for (const Operation& op : operations()) {
      const Recipe recipe{&type, &op, 5, 9};
      for (int rank = 0; rank < recipe.ranks; ++rank) {
        std::vector<std::byte> input(64 * type.size), zero(64 * type.size);
        fill_input(recipe, rank, 0, 64, input.data());
        EXPECT_NE(input, zero) << type.name << " " << op.name << " rank " << rank;
      }
    }
  }
}

TEST(Verify, InputsDifferBetweenRanksAndSeeds) {
  const Recipe first{find_type("int32"), nullptr, 1, 1}, second{find_type("int32"), nullptr, 1, 2};
  uint32_t a[16], b[16], c[16];
  fill_input(first, 0, 0, 16, a);
  fill_input(first, 1, 0, 16, b);
  fill_input(second, 0, 0, 16, c);
  EXPECT_NE(std::memcmp(a, b, sizeof(a)), 0);
  EXPECT_NE(std::memcmp(a, c, sizeof(a)), 0);
}

TEST(Verify, AFlippedBitIsOneWrongElementOfEveryType) {
  for (const ElementType& type : element_types()) {
    for (const Operation* op : {static_cast<const Operation*>(nullptr), find_operation("sum")}) {
      const Recipe recipe{&type, op, 4, 3};
      std::vector<std::byte> a(32 * type.size);
      fill_input(recipe, 2, 0, 32, a.data());
      std::vector<std::byte> b = a;
      b[7 * type.size] ^= std::byte{1};
      EXPECT_EQ(count_wrong(recipe, a.data(), b.data(), 32), 1u) << type.name;
    }
  }
}

TEST(Verify, IntegerAverageIsTheWrappedSumDividedTowardsZero) {
  const Recipe recipe{find_type("int8"), find_operation("avg"), 3, 4};
  for (size_t i = 0; i < 100; ++i) {
    int sum = 0;
    for (int rank = 0; rank < 3; ++rank) {
      int8_t value;
      fill_input(recipe, rank, i, 1, &value);
      sum += value;
    }
    int8_t got;
    fill_reduced(recipe, i, 1, &got);
    EXPECT_EQ(got, static_cast<int8_t>(static_cast<int8_t>(sum) / 3)) << i;
  }
}

}  // namespace
}  // namespace tessera::perf
