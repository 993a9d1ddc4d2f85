#include "common/verify.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/numeric.h"

namespace tessera::perf {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}

uint64_t hash(const Recipe& recipe, uint64_t rank, size_t index) {
  return mix(index * 0x9e3779b97f4a7c15ull + (rank + 1) * 0xc2b2ae3d27d4eb4full + recipe.seed);
}

constexpr uint64_t kShared = 1u << 30;  // in place of a rank: a value that all ranks agree on

int64_t scalar_of(int rank) { return (rank % 2 != 0 ? 2 : 1) * (rank % 3 == 2 ? -1 : 1); }

// An integer of magnitude <= limit; never -0 when turned into a float.
int64_t bounded(uint64_t h, int64_t limit) {
  return static_cast<int64_t>(h % static_cast<uint64_t>(2 * limit + 1)) - limit;
}

// Floats -----------------------------------------------------------------------------------------

// Magnitudes of all ranks add up to at most `budget`. More ranks than budget: only some contribute,
// +-1.
int64_t budgeted(const Recipe& recipe, int rank, size_t index, int64_t budget) {
  const uint64_t h = hash(recipe, rank, index);
  if (budget >= recipe.ranks) return bounded(h, budget / recipe.ranks);
  const uint64_t turn = hash(recipe, kShared, index) + static_cast<uint64_t>(rank);
  return turn % recipe.ranks < static_cast<uint64_t>(budget) ? bounded(h, 1) : 0;
}

template <class F>
double product_input(const Recipe& recipe, int rank, size_t index) {
  const uint64_t h = hash(recipe, rank, index);
  const uint64_t turn = (hash(recipe, kShared, index) + static_cast<uint64_t>(rank)) %
                        static_cast<uint64_t>(recipe.ranks);
  double value = 1;
  if (turn == 0)
    value += static_cast<double>(h >> 40 & ((1u << F::kMantissa) - 1)) / (1 << F::kMantissa);
  const int64_t limit = std::min<int64_t>(F::kProductBudget / recipe.ranks, 8);
  if (limit > 0) {
    value = std::ldexp(value, static_cast<int>(bounded(h, limit)));
  } else if (turn < static_cast<uint64_t>(F::kProductBudget)) {
    value = std::ldexp(value, static_cast<int>(bounded(h, 1)));
  }
  return (h >> 63) != 0 ? -value : value;
}

// Any finite pattern but -0, whose order against +0 is not defined.
template <class F>
typename F::Bits finite_pattern(uint64_t h) {
  auto bits = static_cast<typename F::Bits>(h);
  while (!F::finite(bits)) bits = static_cast<typename F::Bits>(h = mix(h + 1));
  return bits == F::kSign ? 0 : bits;
}

template <class F>
double average_input(const Recipe& recipe, int rank, size_t index) {
  if (std::has_single_bit(static_cast<unsigned>(recipe.ranks))) {
    return static_cast<double>(budgeted(recipe, rank, index, int64_t(1) << F::kDigits));
  }
  const uint64_t shared = hash(recipe, kShared, index);
  if (shared % recipe.ranks != static_cast<uint64_t>(rank)) return 0;
  return static_cast<double>(1 + (shared >> 8) % ((uint64_t(1) << std::min(F::kDigits, 20)) - 1));
}

template <class F>
double float_input(const Recipe& recipe, int rank, size_t index) {
  constexpr int64_t kBudget = int64_t(1) << F::kDigits;
  switch (recipe.op->kind) {
    case OpKind::kSum:
      return static_cast<double>(budgeted(recipe, rank, index, kBudget));
    case OpKind::kMulSum:
      return static_cast<double>(budgeted(recipe, rank, index, kBudget / 2));
    case OpKind::kAvg:
      return average_input<F>(recipe, rank, index);
    case OpKind::kProd:
      return product_input<F>(recipe, rank, index);
    default:
      return F::decode(finite_pattern<F>(hash(recipe, rank, index)));
  }
}

template <class F>
double float_reduced(const Recipe& recipe, size_t index) {
  const OpKind kind = recipe.op->kind;
  double total = float_input<F>(recipe, 0, index);
  if (kind == OpKind::kMulSum) total *= static_cast<double>(scalar_of(0));
  for (int rank = 1; rank < recipe.ranks; ++rank) {
    const double value = float_input<F>(recipe, rank, index);
    switch (kind) {
      case OpKind::kProd:
        total *= value;
        break;
      case OpKind::kMin:
        total = std::min(total, value);
        break;
      case OpKind::kMax:
        total = std::max(total, value);
        break;
      case OpKind::kMulSum:
        total += value * static_cast<double>(scalar_of(rank));
        break;
      default:
        total += value;
    }
  }
  return kind == OpKind::kAvg ? total / recipe.ranks : total;
}

// Integers ---------------------------------------------------------------------------------------

template <class I>
typename I::Bits integer_input(const Recipe& recipe, int rank, size_t index) {
  const auto bits = static_cast<typename I::Bits>(hash(recipe, rank, index));
  return recipe.op->kind == OpKind::kProd ? bits | 1 : bits;  // odd: a product keeps all its bits
}

template <class I>
typename I::Bits integer_scalar(int rank) {
  return static_cast<typename I::Bits>(2 * rank + 3);
}

template <class I>
typename I::Bits integer_reduced(const Recipe& recipe, size_t index) {
  using Bits = typename I::Bits;
  using Value = typename I::Value;
  const OpKind kind = recipe.op->kind;
  const auto input = [&](int rank) -> Bits {
    const Bits bits = integer_input<I>(recipe, rank, index);
    return kind == OpKind::kMulSum ? static_cast<Bits>(bits * integer_scalar<I>(rank)) : bits;
  };
  Bits total = input(0);
  for (int rank = 1; rank < recipe.ranks; ++rank) {
    const Bits bits = input(rank);
    switch (kind) {
      case OpKind::kProd:
        total = static_cast<Bits>(total * bits);
        break;
      case OpKind::kMin:
        total = static_cast<Bits>(std::min<Value>(total, bits));
        break;
      case OpKind::kMax:
        total = static_cast<Bits>(std::max<Value>(total, bits));
        break;
      default:
        total = static_cast<Bits>(total + bits);
    }
  }
  if (kind != OpKind::kAvg) return total;
  return static_cast<Bits>(static_cast<Value>(total) / recipe.ranks);
}

// Both -------------------------------------------------------------------------------------------

template <class F>
typename F::Bits input_bits(const Recipe& recipe, int rank, size_t index) {
  if (recipe.op == nullptr) return static_cast<typename F::Bits>(hash(recipe, rank, index));
  if constexpr (F::kInteger)
    return integer_input<F>(recipe, rank, index);
  else
    return F::encode(float_input<F>(recipe, rank, index));
}

template <class F>
typename F::Bits reduced_bits(const Recipe& recipe, size_t index) {
  if constexpr (F::kInteger)
    return integer_reduced<F>(recipe, index);
  else
    return F::encode(float_reduced<F>(recipe, index));
}

// Position on the number line: neighbours differ by one.
template <class F>
int64_t ordinal(typename F::Bits bits) {
  const auto magnitude = static_cast<int64_t>(bits & static_cast<typename F::Bits>(~F::kSign));
  return (bits & F::kSign) != 0 ? -magnitude : magnitude;
}

template <class Visitor>
auto with_type(const ElementType& type, Visitor visit) {
  switch (type.nccl) {
    case ncclInt8:
      return visit(Integer<int8_t>{});
    case ncclUint8:
      return visit(Integer<uint8_t>{});
    case ncclInt32:
      return visit(Integer<int32_t>{});
    case ncclUint32:
      return visit(Integer<uint32_t>{});
    case ncclInt64:
      return visit(Integer<int64_t>{});
    case ncclUint64:
      return visit(Integer<uint64_t>{});
    case ncclFloat16:
      return visit(Half{});
    case ncclFloat64:
      return visit(Float64{});
    case ncclBfloat16:
      return visit(Bfloat16{});
    case ncclFloat8e4m3:
      return visit(Float8E4M3{});
    case ncclFloat8e5m2:
      return visit(Float8E5M2{});
    default:
      return visit(Float32{});
  }
}

template <class Bits, class Make>
void write_each(void* out, size_t first, size_t count, Make make) {
  auto* bytes = static_cast<std::byte*>(out);
  for (size_t i = 0; i < count; ++i) {
    const Bits bits = make(first + i);
    std::memcpy(bytes + i * sizeof(Bits), &bits, sizeof(Bits));  // `out` may be misaligned
  }
}

template <class F>
size_t wrong_elements(const void* got, const void* expected, size_t count, int64_t tolerance) {
  using Bits = typename F::Bits;
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    Bits a, b;
    std::memcpy(&a, static_cast<const std::byte*>(got) + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&b, static_cast<const std::byte*>(expected) + i * sizeof(Bits), sizeof(Bits));
    if (a == b) continue;
    if constexpr (F::kInteger) {
      ++wrong;
    } else {
      wrong += tolerance == 0 || std::abs(ordinal<F>(a) - ordinal<F>(b)) > tolerance;
    }
  }
  return wrong;
}

int64_t tolerance_of(const Recipe& recipe) {
  if (recipe.op == nullptr || recipe.op->kind != OpKind::kAvg || recipe.type->integer) return 0;
  return std::has_single_bit(static_cast<unsigned>(recipe.ranks)) ? 0 : 2;
}

}  // namespace

void fill_input(const Recipe& recipe, int rank, size_t first, size_t count, void* out) {
  with_type(*recipe.type, [&](auto format) {
    using F = decltype(format);
    write_each<typename F::Bits>(out, first, count,
                                 [&](size_t i) { return input_bits<F>(recipe, rank, i); });
  });
}

void fill_reduced(const Recipe& recipe, size_t first, size_t count, void* out) {
  with_type(*recipe.type, [&](auto format) {
    using F = decltype(format);
    write_each<typename F::Bits>(out, first, count,
                                 [&](size_t i) { return reduced_bits<F>(recipe, i); });
  });
}

uint64_t mulsum_scalar(const ElementType& type, int rank) {
  return with_type(type, [&](auto format) -> uint64_t {
    using F = decltype(format);
    if constexpr (F::kInteger)
      return integer_scalar<F>(rank);
    else
      return F::encode(static_cast<double>(scalar_of(rank)));
  });
}

size_t count_wrong(const Recipe& recipe, const void* got, const void* expected, size_t count) {
  if (std::memcmp(got, expected, count * recipe.type->size) == 0) return 0;
  return with_type(*recipe.type, [&](auto format) {
    return wrong_elements<decltype(format)>(got, expected, count, tolerance_of(recipe));
  });
}

}  // namespace tessera::perf
