#include "fused/compute.h"

#include <cblas.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

namespace perf::fused {
namespace {

class Blas : public Compute {
 public:
  Blas(const float* a, const float* b, int64_t n, int64_t k) : a_(a), b_(b), n_(n), k_(k) {}
  void begin() override {}
  void make(const Block& block, float* to, int64_t ld, bool add) override {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(block.rows),
                static_cast<blasint>(block.cols), static_cast<blasint>(k_), 1, a_ + block.row * k_,
                static_cast<blasint>(k_), b_ + block.col, static_cast<blasint>(n_), add ? 1 : 0, to,
                static_cast<blasint>(ld));
  }

 private:
  const float *a_, *b_;
  int64_t n_, k_;
};

void sleep_until(Clock::time_point due) {
  const auto ns = std::chrono::nanoseconds(due.time_since_epoch()).count();
  const timespec at{ns / 1'000'000'000, ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
  }
}

// Due times are absolute: a late wake-up does not delay what follows.
class Timer : public Compute {
 public:
  Timer(int64_t m, int64_t n, double us, bool host)
      : us_per_element_(us / static_cast<double>(m * n)), host_(host) {
    prctl(PR_SET_TIMERSLACK, 1);
  }
  void begin() override { due_ = Clock::now(); }
  void make(const Block& block, float*, int64_t, bool) override {
    const double us = us_per_element_ * static_cast<double>(block.rows * block.cols);
    due_ +=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(us));
    sleep_until(due_);
  }
  void pause() override { paused_ = Clock::now(); }
  void resume() override {
    if (host_) due_ += Clock::now() - paused_;
  }
  void arrived() override { due_ = std::max(due_, Clock::now()); }

 private:
  double us_per_element_;
  bool host_;
  Clock::time_point due_, paused_;
};

}  // namespace

std::unique_ptr<Compute> blas(const float* a, const float* b, int64_t n, int64_t k) {
  return std::make_unique<Blas>(a, b, n, k);
}

std::unique_ptr<Compute> timer(int64_t m, int64_t n, double us, bool host) {
  return std::make_unique<Timer>(m, n, us, host);
}

}  // namespace perf::fused
