// Fused matrix products against their unfused pairs, side by side: ranks are threads of this
// process, each multiplies on one core.
//
//   fused_gemm_perf [ranks [repetitions]]      default 2 and 7
//
// A line for each shape (of one rank's product, m x n x k, float32) and kind; times in microseconds,
// medians over repetitions of the slowest rank:
//   gemm        OpenBLAS over the whole matrix
//   coll        the collective alone, on what the product left in the caches
//   unfused     the one, then the other
//   fused       tsrGemmReduceScatter, tsrGemmAllReduce, tsrAllGatherGemm
//   ratio       unfused / fused; "loses" below 1
//   reached     the larger of gemm and coll, which no overlap can beat by much, over fused
// The last line has the geometric means. With TESSERA_EMULATE (docs/emulated.md) the links are
// emulated.
#include <cblas.h>
#include <nccl.h>
#include <tessera/gemm.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

enum class Kind { kReduceScatter, kAllReduce, kAllGather };
constexpr Kind kKinds[] = {Kind::kReduceScatter, Kind::kAllReduce, Kind::kAllGather};
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kReduceScatter:
      return "gemm + reduce-scatter";
    case Kind::kAllReduce:
      return "gemm + all-reduce";
    case Kind::kAllGather:
      return "all-gather + gemm";
  }
  return "";
}

struct Shape {
  int64_t m, n, k;
};
constexpr Shape kShapes[] = {{1024, 1024, 64},  {1024, 1024, 128}, {1024, 1024, 256},
                             {1024, 1024, 512}, {2048, 1024, 64},  {2048, 1024, 256},
                             {512, 4096, 128},  {512, 4096, 512}};

void check(ncclResult_t result, const char* text) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), text);
  std::exit(1);
}

// One rank's buffers and calls.
class Rank {
 public:
  Rank(ncclComm_t comm, int ranks, const Shape& s, Kind kind)
      : comm_(comm),
        s_(s),
        kind_(kind),
        own_((s.m + ranks - 1) / ranks),
        a_(static_cast<size_t>(own_ * ranks * s.k), 1.0F),
        b_(static_cast<size_t>(s.k * s.n), 1.0F),
        c_(static_cast<size_t>(own_ * ranks * s.n)),
        gathered_(a_.size()),
        parts_(c_.size()) {
    check(tsrGemmCreate(comm, 1, &gemm_), tsrGemmGetLastError());
  }
  ~Rank() { check(tsrGemmDestroy(gemm_), tsrGemmGetLastError()); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void multiply() {
    const float* a = kind_ == Kind::kAllGather ? gathered_.data() : a_.data();
    float* c = kind_ == Kind::kReduceScatter ? parts_.data() : c_.data();
    const auto m = static_cast<int>(s_.m), n = static_cast<int>(s_.n), k = static_cast<int>(s_.k);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b_.data(), n, 0, c, n);
  }
  void communicate() {
    const auto share = static_cast<size_t>(own_);
    const auto n = static_cast<size_t>(s_.n), k = static_cast<size_t>(s_.k);
    ncclResult_t result = ncclSuccess;
    switch (kind_) {
      case Kind::kReduceScatter:
        result = ncclReduceScatter(parts_.data(), c_.data(), share * n, ncclFloat, ncclSum, comm_,
                                   nullptr);
        break;
      case Kind::kAllReduce:
        result = ncclAllReduce(c_.data(), c_.data(), static_cast<size_t>(s_.m) * n, ncclFloat,
                               ncclSum, comm_, nullptr);
        break;
      case Kind::kAllGather:
        result = ncclAllGather(a_.data(), gathered_.data(), share * k, ncclFloat, comm_, nullptr);
        break;
    }
    check(result, ncclGetLastError(nullptr));
  }
  void unfused() {
    if (kind_ == Kind::kAllGather) communicate();
    multiply();
    if (kind_ != Kind::kAllGather) communicate();
  }
  void fused() {
    tsrGemmProblem_t p = TSR_GEMM_PROBLEM_INITIALIZER;
    p.m = s_.m;
    p.n = p.ldb = p.ldc = s_.n;
    p.k = p.lda = s_.k;
    p.a = a_.data();
    p.b = b_.data();
    p.c = c_.data();
    const auto function = kind_ == Kind::kReduceScatter ? tsrGemmReduceScatter
                          : kind_ == Kind::kAllReduce   ? tsrGemmAllReduce
                                                        : tsrAllGatherGemm;
    check(function(gemm_, &p), tsrGemmGetLastError());
  }

 private:
  ncclComm_t comm_;
  Shape s_;
  Kind kind_;
  int64_t own_;
  std::vector<float> a_, b_, c_, gathered_, parts_;
  tsrGemm_t gemm_ = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double gemm, collective, unfused, fused;
};

// All parts in turn, so that what the machine does besides strikes all alike.
Times measure(const std::vector<ncclComm_t>& comms, const Shape& shape, Kind kind,
              int repetitions) {
  using Clock = std::chrono::steady_clock;
  const auto ranks = static_cast<int>(comms.size());
  void (Rank::*const parts[])() = {&Rank::multiply, &Rank::communicate, &Rank::unfused,
                                   &Rank::fused};
  std::vector<double> slowest[4];
  std::vector<double> last(comms.size());
  std::barrier meet(ranks);
  const auto work = [&](int r) {
    Rank rank(comms[r], ranks, shape, kind);
    for (int i = -2; i < repetitions; ++i) {
      for (int part = 0; part < 4; ++part) {
        meet.arrive_and_wait();
        const Clock::time_point start = Clock::now();
        (rank.*parts[part])();
        last[r] = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
        meet.arrive_and_wait();
        if (r == 0 && i >= 0) slowest[part].push_back(*std::max_element(last.begin(), last.end()));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(work, r);
  for (std::thread& thread : threads) thread.join();
  return {median(slowest[0]), median(slowest[1]), median(slowest[2]), median(slowest[3])};
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 7;
  if (ranks < 1 || repetitions < 1) {
    std::fprintf(stderr, "usage: %s [ranks [repetitions]]\n", argv[0]);
    return 2;
  }
  openblas_set_num_threads(1);
  std::vector<ncclComm_t> comms(static_cast<size_t>(ranks));
  check(ncclCommInitAll(comms.data(), ranks, nullptr), ncclGetLastError(nullptr));
  std::printf("%-22s %6s %6s %6s %10s %10s %10s %10s %7s %8s\n", "kind", "m", "n", "k", "gemm",
              "coll", "unfused", "fused", "ratio", "reached");
  double logs = 0, reached_logs = 0;
  int cells = 0;
  for (const Kind kind : kKinds) {
    for (const Shape& s : kShapes) {
      const Times t = measure(comms, s, kind, repetitions);
      const double ratio = t.unfused / t.fused;
      const double reached = std::max(t.gemm, t.collective) / t.fused;
      std::printf("%-22s %6ld %6ld %6ld %10.1f %10.1f %10.1f %10.1f %7.3f %8.3f%s\n", name_of(kind),
                  long{s.m}, long{s.n}, long{s.k}, t.gemm, t.collective, t.unfused, t.fused, ratio,
                  reached, ratio < 1 ? "  loses" : "");
      logs += std::log(ratio);
      reached_logs += std::log(reached);
      ++cells;
    }
  }
  std::printf("%d ranks, %d cells: geometric mean of ratios %.3f, of reached %.3f\n", ranks, cells,
              std::exp(logs / cells), std::exp(reached_logs / cells));
  for (ncclComm_t comm : comms) check(ncclCommDestroy(comm), ncclGetLastError(nullptr));
  return 0;
}
