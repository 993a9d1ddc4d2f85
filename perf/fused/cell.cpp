#include "fused/cell.h"

#include <cstdio>
#include <cstdlib>

#include "fused/rounds.h"

namespace perf::fused {
namespace {

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

}  // namespace

Schedule emulate(const Setup& setup, const CellOptions& options, size_t element_bytes) {
  const int64_t elements = setup.product.m / setup.ranks * setup.product.n;
  const double chunk = static_cast<double>(elements) * static_cast<double>(element_bytes);
  Schedule schedule;
  schedule.ranks = setup.ranks;
  schedule.t = options.ratio * options.product_us / setup.ranks;
  const double rate = chunk / (schedule.t - options.latency_us);  // bytes per us = MB/s
  if (schedule.t <= options.latency_us) {
    std::fprintf(stderr, "a chunk's %.1f us are less than the latency\n", schedule.t);
    std::exit(2);
  }
  char text[128];
  std::snprintf(text, sizeof text, "uniform:bandwidth=%.4fMB/s,latency=%.2fus", rate,
                options.latency_us);
  setenv("TESSERA_EMULATE", text, 1);
  return schedule;
}

Cell measure(const Setup& setup, const CellOptions& options) {
  Cell cell;
  if (options.ratio > 0) cell.schedule = emulate(setup, options, sizeof(float));
  Rounds rounds(setup.ranks);
  with_communicators(setup.ranks, options.hosts, [&](ncclComm_t comm, int r) {
    Rank rank(comm, setup);
    run_rank(rank, r, setup, options, rounds);
    if (r != 0) return;
    const double product_us = rounds.result(kProduct);
    cell.scatter = rank.scatter_costs(product_us);
    cell.library_fuses = rank.library_fuses();
    cell.chain = rank.chain_costs(product_us);
    cell.all_reduce = rank.all_reduce_costs(product_us);
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
      rounds.run(r,
                 {{kProduct,
                   [&] {
                     compute->make({0, p.m, 0, p.n}, c.data(), p.n, false);
                   }}},
                 i >= 0);
    }
  });
  return rounds.result(kProduct);
}

}  // namespace perf::fused
