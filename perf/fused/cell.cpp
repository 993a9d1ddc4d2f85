#include "fused/cell.h"

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "fused/hosts.h"

namespace perf::fused {
namespace {

constexpr int kTrials = 6;  // of tessera/gemm.h

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Ranks are threads; each round every rank runs the same parts, and the slowest counts.
class Rounds {
 public:
  Rounds(int ranks) : ranks_(ranks), meet_(ranks), ends_(static_cast<size_t>(ranks)) {}

  // Runs `parts` one after the other; the end of the i-th, from the common start, is a sample of
  // ways[i].
  struct Part {
    Timing way;
    std::function<void()> run;
  };
  void run(int rank, const std::vector<Part>& parts, bool counts) {
    std::vector<double>& ends = ends_[static_cast<size_t>(rank)];
    ends.clear();
    meet_.arrive_and_wait();
    const Clock::time_point start = Clock::now();
    for (const Part& part : parts) {
      part.run();
      ends.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    meet_.arrive_and_wait();
    if (rank == 0 && counts) {
      for (size_t i = 0; i < parts.size(); ++i) {
        double slowest = 0;
        for (const std::vector<double>& of_rank : ends_) slowest = std::max(slowest, of_rank[i]);
        samples_[parts[i].way].push_back(slowest);
      }
    }
    meet_.arrive_and_wait();
  }
  double result(Timing way) const { return median(samples_[way]); }

 private:
  int ranks_;
  std::barrier<> meet_;
  std::vector<std::vector<double>> ends_;
  std::array<std::vector<double>, kTimings> samples_;
};

void run_rank(Rank& rank, int number, const Setup& setup, const CellOptions& options,
              Rounds& rounds) {
  const auto product = [&] { rank.product(); };
  const auto scatter = [&] { rank.reduce_scatter(); };
  const auto gather = [&] { rank.all_gather(); };
  const auto fused = [&](Without without) { return [&, without] { rank.fused(without); }; };
  // The library tries both ways first.
  for (int i = 0; setup.operators && i < kTrials; ++i) rank.library();
  for (int i = -1; i < options.repetitions; ++i) {
    const auto go = [&](const std::vector<Rounds::Part>& parts) {
      rounds.run(number, parts, i >= 0);
    };
    go({{kProduct, product}});
    go({{kReduceScatter, scatter}});
    go({{kAllGather, gather}});
    go({{kAllReduce, [&] { rank.all_reduce(); }}});
    go({{kProduct, product},
        {kUnfused, scatter},
        {kUnfusedSublayer, gather},
        {kUnfusedChain, [&] { rank.second_product(); }}});
    go({{kProduct, product}, {kUnfusedAllReduce, [&] { rank.all_reduce(); }}});
    go({{kFusedAllReduce, [&] { rank.fused_all_reduce(); }}});
    go({{kFused, fused(Without::kNothing)}, {kFusedSublayer, gather}});
    go({{kFusedChain, [&] { rank.chain(); }}});
    if (setup.operators) go({{kLibrary, [&] { rank.library(); }}});
    if (!options.ablations) continue;
    go({{kNoStagger, fused(Without::kStagger)}});
    go({{kNoArrival, fused(Without::kArrival)}});
    if (setup.engine != Engine::kDeviceTimer) go({{kNoBudget, fused(Without::kBudget)}});
  }
}

void emulate(const Setup& setup, const CellOptions& options, Schedule* schedule) {
  const double chunk = static_cast<double>(setup.product.m / setup.ranks * setup.product.n) * 4;
  schedule->ranks = setup.ranks;
  schedule->t = options.ratio * options.product_us / setup.ranks;
  const double rate = chunk / (schedule->t - options.latency_us);  // bytes per us = MB/s
  if (schedule->t <= options.latency_us) {
    std::fprintf(stderr, "a chunk's %.1f us are less than the latency\n", schedule->t);
    std::exit(2);
  }
  char text[128];
  std::snprintf(text, sizeof text, "uniform:bandwidth=%.4fMB/s,latency=%.2fus", rate,
                options.latency_us);
  setenv("TESSERA_EMULATE", text, 1);
}

void in_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(body, r);
  for (std::thread& thread : threads) thread.join();
}

ncclUniqueId unique_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), ncclGetLastError(nullptr));
  return id;
}

}  // namespace

Cell measure(const Setup& setup, const CellOptions& options) {
  Cell cell;
  if (options.ratio > 0) emulate(setup, options, &cell.schedule);
  Rounds rounds(setup.ranks);
  std::promise<ncclUniqueId> first;
  const std::shared_future<ncclUniqueId> id = first.get_future().share();
  in_threads(setup.ranks, [&](int r) {
    enter_host(options.hosts, r, setup.ranks);
    if (r == 0) first.set_value(unique_id());
    ncclComm_t comm = nullptr;
    check(ncclCommInitRank(&comm, setup.ranks, id.get(), r), ncclGetLastError(nullptr));
    {
      Rank rank(comm, setup);
      run_rank(rank, r, setup, options, rounds);
      if (r == 0) {
        const double product_us = rounds.result(kProduct);
        cell.scatter = rank.scatter_costs(product_us);
        cell.library_fuses = rank.library_fuses();
        cell.chain = rank.chain_costs(product_us);
        cell.all_reduce = rank.all_reduce_costs(product_us);
      }
    }
    check(ncclCommDestroy(comm), ncclGetLastError(nullptr));
  });
  for (size_t way = 0; way < kTimings; ++way) cell.us[way] = rounds.result(Timing(way));
  cell.schedule.g = cell.us[kProduct] / setup.ranks;
  return cell;
}

double calibrate(const Setup& setup) {
  if (setup.engine != Engine::kBlas) return setup.compute_us;
  Rounds rounds(setup.ranks);
  in_threads(setup.ranks, [&](int r) {
    const Product& p = setup.product;
    const std::vector<float> a(static_cast<size_t>(p.m * p.k), 1.0F);
    const std::vector<float> b(static_cast<size_t>(p.k * p.n), 1.0F);
    std::vector<float> c(static_cast<size_t>(p.m * p.n));
    const std::unique_ptr<Compute> compute = blas(a.data(), b.data(), p.n, p.k);
    for (int i = -1; i < 5; ++i) {
      rounds.run(r, {{kProduct, [&] { compute->make({0, p.m, 0, p.n}, c.data(), p.n); }}}, i >= 0);
    }
  });
  return rounds.result(kProduct);
}

}  // namespace perf::fused
