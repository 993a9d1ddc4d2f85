// Products of two ranks of one process, whose sums are made in place: each element by the owner's
// product, then the other's on top.
#include <gtest/gtest.h>
#include <tessera/gemm.h>

#include <cmath>
#include <vector>

#include "api/ranks.h"

namespace tessera {
namespace {

// Many bits, so that the order of additions shows.
std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::vector<float> all(static_cast<size_t>(count));
  for (float& x : all) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    x = static_cast<float>(seed >> 40) / 16777216.0F - 0.5F;
  }
  return all;
}

struct Shape {
  int64_t m, n, k;
};

// C of each rank, after each of some calls.
std::vector<std::vector<float>> run(const Shape& s, bool scatters, tsrGemmFusing_t fusing,
                                    int threads, int calls, float beta) {
  std::vector<std::vector<float>> all(static_cast<size_t>(2 * calls));
  const Ranks ranks(2);
  ranks.on_threads([&](int rank, ncclComm_t comm) {
    tsrGemm_t gemm = nullptr;
    ASSERT_EQ(tsrGemmCreate(comm, threads, &gemm), ncclSuccess) << tsrGemmGetLastError();
    ASSERT_EQ(tsrGemmSetFusing(gemm, fusing), ncclSuccess);
    const std::vector<float> a = numbers(s.m * s.k, 1 + static_cast<uint64_t>(rank));
    const std::vector<float> b = numbers(s.k * s.n, 3 + static_cast<uint64_t>(rank));
    for (int call = 0; call < calls; ++call) {
      std::vector<float>& c = all[static_cast<size_t>(2 * call + rank)];
      c.assign(static_cast<size_t>(scatters ? s.m / 2 * s.n : s.m * s.n), 0.25F);
      tsrGemmProblem_t p = TSR_GEMM_PROBLEM_INITIALIZER;
      p.m = s.m;
      p.n = p.ldb = p.ldc = s.n;
      p.k = p.lda = s.k;
      p.beta = beta;
      p.a = a.data();
      p.b = b.data();
      p.c = c.data();
      ASSERT_EQ(scatters ? tsrGemmReduceScatter(gemm, &p) : tsrGemmAllReduce(gemm, &p), ncclSuccess)
          << tsrGemmGetLastError();
      int fused = -1;
      ASSERT_EQ(tsrGemmFused(gemm, &fused), ncclSuccess);
      EXPECT_EQ(fused, fusing == tsrGemmFuse ? 1 : 0);
    }
    EXPECT_EQ(tsrGemmDestroy(gemm), ncclSuccess);
  });
  return all;
}

TEST(GemmOnto, HasTheSameBitsInEveryCallAndIsAsTheUnfusedProductButForRounding) {
  for (const Shape& s : {Shape{512, 96, 700}, Shape{272, 33, 64}, Shape{1024, 8, 17}}) {
    for (const bool scatters : {true, false}) {
      for (const float beta : {0.0F, 2.0F}) {
        const auto fused = run(s, scatters, tsrGemmFuse, 3, 6, beta);
        const auto unfused = run(s, scatters, tsrGemmDoNotFuse, 1, 1, beta);
        for (size_t i = 0; i < fused.size(); ++i) {
          EXPECT_EQ(fused[i], fused[i % 2]) << "call " << i / 2;
          ASSERT_EQ(fused[i].size(), unfused[i % 2].size());
          for (size_t at = 0; at < fused[i].size(); ++at)
            ASSERT_NEAR(fused[i][at], unfused[i % 2][at], 2e-4) << at;
        }
        if (!scatters) {
          EXPECT_EQ(fused[0], fused[1]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
