#include "common/limits.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "sync/counter.h"

namespace tessera::perf {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// All cores that the system grants, also those that a launcher took from this process's mask:
// asking for every core gives what is allowed. In a thread of its own, so that the process keeps
// its mask.
std::vector<int> usable_cores() {
  cpu_set_t set;
  std::thread([&set] {
    CPU_ZERO(&set);
    for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &set);
    const bool widened = sched_setaffinity(0, sizeof(set), &set) == 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0 || !widened) CPU_ZERO(&set);
  }).join();
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores.empty() ? std::vector<int>{0} : cores;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // Best effort: without the right to pin, the probe is only noisier.
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
}

// Ping-pong of one line per direction, half a round trip; the best of several runs.
double exchange_latency(int core_a, int core_b) {
  constexpr uint64_t kTrips = 1000;
  constexpr int kRuns = 100;
  double best = 1;
  PaddedCounter ping_line, pong_line;
  Counter &ping = ping_line.counter, &pong = pong_line.counter;
  std::thread partner([&] {
    pin_to(core_b);
    for (uint64_t i = 1; i <= kTrips * kRuns; ++i) {
      while (!ping.reached(i)) {
      }
      pong.publish(1);
    }
  });
  std::thread driver([&] {
    pin_to(core_a);
    uint64_t i = 0;
    for (int run = 0; run < kRuns; ++run) {
      const Clock::time_point start = Clock::now();
      for (uint64_t end = i + kTrips; i < end;) {
        ++i;
        ping.publish(1);
        while (!pong.reached(i)) {
        }
      }
      best = std::min(best, since(start) / kTrips / 2);
    }
  });
  driver.join();
  partner.join();
  return best;
}

void add_plain(float* c, const float* a, const float* b, size_t count) {
  for (size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void add_avx2(float* c, const float* a, const float* b,
                                              size_t count) {
#if !defined(__clang__)
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}
#endif

void add(float* c, const float* a, const float* b, size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return add_avx2(c, a, b, count);
#endif
  add_plain(c, a, b, count);
}

struct Arrays {
  std::unique_ptr<float[]> a, b, c;
  size_t count;
};

Arrays make_arrays(size_t working_set, int arrays) {
  const size_t count = working_set / sizeof(float) / static_cast<size_t>(arrays);
  return {std::make_unique<float[]>(count), std::make_unique<float[]>(count),
          std::make_unique<float[]>(count), count};
}

// Bytes written per second by `cores` together, every core on its own arrays; the best of several
// runs.
double bandwidth(const std::vector<int>& cores, size_t working_set, int arrays,
                 const std::function<void(Arrays&)>& pass) {
  constexpr int kRuns = 5;
  constexpr double kBytesPerRun = 32e6;
  const int passes = std::max(1, static_cast<int>(kBytesPerRun / static_cast<double>(working_set)));
  std::barrier<> gate(static_cast<std::ptrdiff_t>(cores.size()));
  std::vector<double> best(cores.size(), 1e9);
  std::vector<std::thread> threads;
  size_t bytes = 0;
  for (size_t t = 0; t < cores.size(); ++t) {
    threads.emplace_back([&, t] {
      pin_to(cores[t]);
      Arrays arrays_here = make_arrays(working_set, arrays);
      if (t == 0) bytes = arrays_here.count * sizeof(float);
      pass(arrays_here);
      for (int run = 0; run < kRuns; ++run) {
        gate.arrive_and_wait();
        const Clock::time_point start = Clock::now();
        for (int p = 0; p < passes; ++p) pass(arrays_here);
        best[t] = std::min(best[t], since(start));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double slowest = *std::max_element(best.begin(), best.end());
  return static_cast<double>(bytes) * passes * static_cast<double>(cores.size()) / slowest;
}

void keep(const void* data) { asm volatile("" : : "r"(data) : "memory"); }

void copy_pass(Arrays& arrays) {
  std::memcpy(arrays.c.get(), arrays.a.get(), arrays.count * sizeof(float));
  keep(arrays.c.get());
}

void add_pass(Arrays& arrays) {
  add(arrays.c.get(), arrays.a.get(), arrays.b.get(), arrays.count);
  keep(arrays.c.get());
}

void update_pass(Arrays& arrays) {
  add(arrays.c.get(), arrays.a.get(), arrays.c.get(), arrays.count);
  keep(arrays.c.get());
}

}  // namespace

Limits probe_limits() {
  const std::vector<int> cores = usable_cores();
  const std::vector<int> one = {cores.front()};
  Limits limits;
  limits.cores = static_cast<int>(cores.size());
  if (cores.size() > 1) limits.exchange_seconds = exchange_latency(cores[0], cores[1]);
  for (const size_t set :
       {size_t{32} << 10, size_t{512} << 10, size_t{8} << 20, size_t{128} << 20}) {
    Bandwidth b;
    b.working_set = set;
    b.copy_one = bandwidth(one, set, 2, copy_pass);
    b.copy_all = bandwidth(cores, set, 2, copy_pass);
    b.add_one = bandwidth(one, set, 3, add_pass);
    b.add_all = bandwidth(cores, set, 3, add_pass);
    b.update_one = bandwidth(one, set, 2, update_pass);
    b.update_all = bandwidth(cores, set, 2, update_pass);
    limits.bandwidths.push_back(b);
  }
  return limits;
}

double Limits::bound_seconds(const Traffic& traffic, int ranks, bool in_place) const {
  const double bytes = traffic.read + traffic.written;
  const int busy = std::clamp(ranks, 1, cores);
  const Bandwidth* chosen = &bandwidths.front();
  for (const Bandwidth& b : bandwidths) {
    if (static_cast<double>(b.working_set) * busy <= bytes) chosen = &b;
  }
  double one = std::max(2 * chosen->copy_one, 3 * chosen->add_one);
  double all = std::max(2 * chosen->copy_all, 3 * chosen->add_all);
  if (in_place)
    one = std::max(one, 3 * chosen->update_one), all = std::max(all, 3 * chosen->update_all);
  // Between one core and all of them: never more than `busy` times one core.
  const double rate = busy == cores ? all : std::min(one * busy, all);
  return std::max(ranks > 1 ? exchange_seconds : 0.0, bytes / std::max(rate, 1.0));
}

std::string Limits::describe() const {
  std::string text = fmt::format("# Limits of this machine, {} core(s)\n", cores);
  text += exchange_seconds > 0
              ? fmt::format("#   cache line exchange, one way: {:.0f} ns\n", exchange_seconds * 1e9)
              : std::string("#   cache line exchange: not measured, one core only\n");
  for (const Bandwidth& b : bandwidths) {
    const auto pair = [](double one, double all) {
      return fmt::format("{:6.1f} {:6.1f}", one / 1e9, all / 1e9);
    };
    text += fmt::format(
        "#   {:6} KiB per core, GB/s by one core and by all: copy {}, c = a + b {}, c += a {}\n",
        b.working_set >> 10, pair(b.copy_one, b.copy_all), pair(b.add_one, b.add_all),
        pair(b.update_one, b.update_all));
  }
  return text;
}

}  // namespace tessera::perf
