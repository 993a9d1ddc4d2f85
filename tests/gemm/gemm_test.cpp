// Fused matrix products give what the definition says. Values are small integers, so that sums are
// exact in every type.
#include <gmock/gmock.h>
#include <tessera/gemm.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "api/ranks.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

float small(int rank, int64_t row, int64_t col) {
  return static_cast<float>((row * 7 + col * 3 + rank * 5) % 4 - 1);
}

struct Case {
  int64_t m = 8, n = 8, k = 8;
  ncclDataType_t type = ncclFloat;
  bool column_major = false, transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  int threads = 1;
  int64_t gap = 3;       // between lines
  bool varying = false;  // another one on each rank, in each call
  int calls = 2;
  tsrGemmFusing_t fusing = tsrGemmChoose;
};

// A stored matrix of floats or 16-bit numbers.
class Stored {
 public:
  Stored(const Case& c, int64_t rows, int64_t cols, bool transposed)
      : type_(c.type), line_wise_(c.column_major == transposed) {
    ld_ = (line_wise_ ? cols : rows) + c.gap;
    bytes_.resize(static_cast<size_t>(ld_ * ((line_wise_ ? rows : cols) + 1)) * size());
  }
  void set(int64_t row, int64_t col, float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if (type_ == ncclFloat) std::memcpy(at(row, col), &value, 4);
    if (type_ == ncclBfloat16) put(row, col, static_cast<uint16_t>(bits >> 16));
    if (type_ == ncclHalf)
      put(row, col,
          value == 0 ? 0
                     : static_cast<uint16_t>((bits >> 16 & 0x8000) |
                                             ((bits & 0x7fffffff) - (112u << 23)) >> 13));
  }
  float get(int64_t row, int64_t col) {
    float value = 0;
    if (type_ == ncclFloat) {
      std::memcpy(&value, at(row, col), 4);
      return value;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, at(row, col), 2);
    if (type_ == ncclBfloat16) return std::bit_cast<float>(uint32_t{bits} << 16);
    const float magnitude =
        std::ldexp(static_cast<float>((bits & 0x3ff) + ((bits & 0x7c00) ? 1024 : 0)),
                   std::max(bits >> 10 & 31, 1) - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
  }
  void* data() { return bytes_.data(); }
  int64_t ld() const { return ld_; }

 private:
  size_t size() const { return type_ == ncclFloat ? 4 : 2; }
  char* at(int64_t row, int64_t col) {
    return bytes_.data() +
           static_cast<size_t>(line_wise_ ? row * ld_ + col : col * ld_ + row) * size();
  }
  void put(int64_t row, int64_t col, uint16_t bits) { std::memcpy(at(row, col), &bits, 2); }

  ncclDataType_t type_;
  bool line_wise_;
  int64_t ld_ = 0;
  std::vector<char> bytes_;
};

float product(const Case& c, int rank, int64_t row, int64_t col) {
  float sum = 0;
  for (int64_t i = 0; i < c.k; ++i) sum += small(rank, row, i) * small(rank + 1, i, col);
  return c.alpha * sum;
}

float sum_of_products(const Case& c, int ranks, int64_t row, int64_t col) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += product(c, rank, row, col);
  return sum;
}

enum class Kind { kReduceScatter, kAllReduce, kAllToAll, kAllGather };

float expected(const Case& c, Kind kind, int ranks, int rank, int64_t row, int64_t col) {
  const int64_t block = (c.m + ranks - 1) / ranks;
  const int owner = static_cast<int>(row / block);
  switch (kind) {
    case Kind::kReduceScatter:
      return sum_of_products(c, ranks, rank * block + row, col);
    case Kind::kAllReduce:
      return sum_of_products(c, ranks, row, col);
    case Kind::kAllToAll:
      return product(c, owner, rank * block + row % block, col);
    case Kind::kAllGather: {
      float sum = 0;
      for (int64_t i = 0; i < c.k; ++i)
        sum += small(owner, row % block, i) * small(rank + 1, i, col);
      return c.alpha * sum;
    }
  }
  return 0;
}

void run_once(const Case& c, Kind kind, int ranks, int rank, tsrGemm_t gemm) {
  const int64_t block = (c.m + ranks - 1) / ranks;
  const int64_t own = std::clamp<int64_t>(c.m - rank * block, 0, block);
  const int64_t a_rows = kind == Kind::kAllGather ? own : c.m;
  const int64_t c_rows = kind == Kind::kReduceScatter ? own : c.m;
  Stored a(c, a_rows, c.k, c.transpose_a), b(c, c.k, c.n, c.transpose_b),
      out(c, c_rows, c.n, false);
  for (int64_t i = 0; i < c.k; ++i) {
    for (int64_t row = 0; row < a_rows; ++row) a.set(row, i, small(rank, row, i));
    for (int64_t col = 0; col < c.n; ++col) b.set(i, col, small(rank + 1, i, col));
  }
  tsrGemmProblem_t p = TSR_GEMM_PROBLEM_INITIALIZER;
  p.type = c.type;
  p.column_major = c.column_major;
  p.transpose_a = c.transpose_a;
  p.transpose_b = c.transpose_b;
  p.m = c.m;
  p.n = c.n;
  p.k = c.k;
  p.alpha = c.alpha;
  p.beta = c.beta;
  p.a = a.data();
  p.b = b.data();
  p.c = out.data();
  p.lda = std::max<int64_t>(a.ld(), 1);  // a rank without rows has lines without elements
  p.ldb = b.ld();
  p.ldc = std::max<int64_t>(out.ld(), 1);
  for (int64_t row = 0; row < c_rows; ++row)
    for (int64_t col = 0; col < c.n; ++col) out.set(row, col, static_cast<float>((row + col) % 3));
  const auto function = kind == Kind::kReduceScatter ? tsrGemmReduceScatter
                        : kind == Kind::kAllReduce   ? tsrGemmAllReduce
                        : kind == Kind::kAllToAll    ? tsrGemmAllToAll
                                                     : tsrAllGatherGemm;
  ASSERT_EQ(function(gemm, &p), ncclSuccess) << tsrGemmGetLastError();
  for (int64_t row = 0; row < c_rows; ++row) {
    for (int64_t col = 0; col < c.n; ++col) {
      const float want =
          expected(c, kind, ranks, rank, row, col) + c.beta * static_cast<float>((row + col) % 3);
      const float got = out.get(row, col);  // millions of them: no assertion for each
      if (got != want)
        FAIL() << got << " instead of " << want << ": rank " << rank << " row " << row << " col "
               << col;
    }
  }
}

void run_rank(const Case& c, Kind kind, int ranks, int rank, ncclComm_t comm) {
  tsrGemm_t gemm = nullptr;
  ASSERT_EQ(tsrGemmCreate(comm, c.threads, &gemm), ncclSuccess) << tsrGemmGetLastError();
  ASSERT_EQ(tsrGemmSetFusing(gemm, c.fusing), ncclSuccess);
  for (int call = 0; call < c.calls; ++call) {
    Case now = c;
    if (c.varying) now.gap = (rank + call) % 3;
    run_once(now, kind, ranks, rank, gemm);
  }
  int fused = -1;
  EXPECT_EQ(tsrGemmFused(gemm, &fused), ncclSuccess);
  if (c.fusing == tsrGemmFuse) {
    EXPECT_EQ(fused, 1);
  }
  if (c.fusing == tsrGemmDoNotFuse && c.m % ranks == 0 && !c.column_major && !c.transpose_a) {
    EXPECT_EQ(fused, 0);
  }
  EXPECT_EQ(tsrGemmDestroy(gemm), ncclSuccess);
}

class EveryProduct : public ::testing::TestWithParam<Kind> {
 protected:
  void run(const Case& c, int count) {
    const Ranks ranks(count);
    ranks.on_threads(
        [&](int rank, ncclComm_t comm) { run_rank(c, GetParam(), count, rank, comm); });
  }
  // Rows that the ranks do not share evenly, where the collective allows it.
  int64_t ragged(int64_t rows, int ranks) const {
    return GetParam() == Kind::kAllToAll ? (rows + ranks - 1) / ranks * ranks : rows;
  }
};

TEST_P(EveryProduct, IsRightForAnyShape) {
  for (const int ranks : {1, 2, 3}) {
    for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {5, 7, 3}, {150, 33, 20}, {97, 1100, 6}}) {
      Case c;
      c.m = ragged(m, ranks);
      c.n = n;
      c.k = k;
      run(c, ranks);
    }
  }
}

TEST_P(EveryProduct, IsRightWithOtherGapsBetweenLinesOnEachRankAndInEachCall) {
  for (const tsrGemmFusing_t fusing : {tsrGemmChoose, tsrGemmFuse, tsrGemmDoNotFuse}) {
    for (const bool column_major : {false, true}) {
      for (const int ranks : {2, 3}) {
        Case c;
        c.m = ragged(24 + (column_major ? 1 : 0), ranks);
        c.n = 10;
        c.k = 6;
        c.beta = 1;
        if (GetParam() == Kind::kAllToAll) c.beta = 0;
        c.column_major = column_major;
        c.varying = true;
        c.calls = 8;
        c.fusing = fusing;
        run(c, ranks);
      }
    }
  }
}

TEST_P(EveryProduct, GoesOnWithMoreShapesThanThereIsScratchFor) {
  const Ranks ranks(2);
  ranks.on_threads([&](int rank, ncclComm_t comm) {
    tsrGemm_t gemm = nullptr;
    ASSERT_EQ(tsrGemmCreate(comm, 1, &gemm), ncclSuccess) << tsrGemmGetLastError();
    ASSERT_EQ(tsrGemmSetFusing(gemm, tsrGemmFuse), ncclSuccess);
    for (int64_t i = 0; i < 40; ++i) {
      Case c;
      c.m = 2 * (256 + i);
      c.n = 1024;
      c.k = 1;
      run_once(c, GetParam(), 2, rank, gemm);
    }
    EXPECT_EQ(tsrGemmDestroy(gemm), ncclSuccess);
  });
}

TEST_P(EveryProduct, IsRightUnfusedAndWhileTheLibraryTriesBothWays) {
  for (const tsrGemmFusing_t fusing : {tsrGemmChoose, tsrGemmFuse, tsrGemmDoNotFuse}) {
    for (const ncclDataType_t type : {ncclFloat, ncclBfloat16}) {
      for (const int threads : {1, 2}) {
        Case c;
        c.m = 96;
        c.n = 40;
        c.k = 9;
        c.type = type;
        c.threads = threads;
        c.gap = 0;
        c.calls = 8;
        c.fusing = fusing;
        c.beta = GetParam() == Kind::kAllToAll || type != ncclFloat ? 0 : 3;
        run(c, 3);
        run(c, 2);
      }
    }
  }
}

TEST_P(EveryProduct, IsRightInEveryLayoutWithAlphaAndBeta) {
  for (int bits = 0; bits < 8; ++bits) {
    Case c;
    c.m = ragged(100, 3);
    c.n = 18;
    c.k = 9;
    c.column_major = (bits & 1) != 0;
    c.transpose_a = (bits & 2) != 0;
    c.transpose_b = (bits & 4) != 0;
    c.alpha = 2;
    c.beta = GetParam() == Kind::kAllToAll ? 0 : 3;
    run(c, 3);
    c.m = 100;  // of two ranks one adds onto the other, where tiles allow it
    run(c, 2);
  }
}

TEST_P(EveryProduct, IsRightForNumbersOfHalfWidth) {
  for (const ncclDataType_t type : {ncclHalf, ncclBfloat16}) {
    for (const bool flip : {false, true}) {
      Case c;
      c.type = type;
      c.m = ragged(70, 2);
      c.n = 12;
      c.k = 8;
      c.column_major = c.transpose_a = flip;
      c.beta = GetParam() == Kind::kAllToAll ? 0 : 2;
      run(c, 2);
    }
  }
}

TEST_P(EveryProduct, IsRightOnSeveralThreads) {
  Case c;
  c.m = ragged(200, 2);
  c.n = 64;
  c.k = 16;
  c.threads = 3;
  run(c, 2);
}

std::string kind_name(const ::testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"ReduceScatter", "AllReduce", "AllToAll", "AllGather"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Gemm, EveryProduct,
                         ::testing::Values(Kind::kReduceScatter, Kind::kAllReduce, Kind::kAllToAll,
                                           Kind::kAllGather),
                         kind_name);

TEST(Gemm, ProblemsThatMakeNoSenseAreRefused) {
  const Ranks ranks(1);
  tsrGemm_t gemm = nullptr;
  EXPECT_EQ(tsrGemmCreate(ranks[0], 0, &gemm), ncclInvalidArgument);
  EXPECT_EQ(tsrGemmCreate(nullptr, 1, &gemm), ncclInvalidArgument);
  ASSERT_EQ(tsrGemmCreate(ranks[0], 1, &gemm), ncclSuccess);
  float x = 1;
  const auto refused = [&](void (*spoil)(tsrGemmProblem_t&), const char* text) {
    tsrGemmProblem_t p = TSR_GEMM_PROBLEM_INITIALIZER;
    p.m = p.n = p.k = p.lda = p.ldb = p.ldc = 1;
    p.a = p.b = &x;
    p.c = &x;
    spoil(p);
    EXPECT_EQ(tsrGemmAllToAll(gemm, &p), ncclInvalidArgument);
    EXPECT_THAT(tsrGemmGetLastError(), HasSubstr(text));
  };
  refused([](tsrGemmProblem_t& p) { p.size = 3; }, "TSR_GEMM_PROBLEM_INITIALIZER");
  refused([](tsrGemmProblem_t& p) { p.type = ncclInt8; }, "type 0");
  refused([](tsrGemmProblem_t& p) { p.k = 0; }, "not 0");
  refused([](tsrGemmProblem_t& p) { p.k = 2; }, "lda 1 is less");
  refused([](tsrGemmProblem_t& p) { p.n = 2; }, "ldb 1 is less");
  refused([](tsrGemmProblem_t& p) { p.beta = 1; }, "beta is to be 0");
  refused([](tsrGemmProblem_t& p) { p.c = nullptr; }, "NULL");
  EXPECT_EQ(tsrGemmDestroy(gemm), ncclSuccess);
}

}  // namespace
}  // namespace tessera
