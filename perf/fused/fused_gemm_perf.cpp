// Fused products against their unfused pairs, side by side, in one process whose threads are ranks.
//
// A cell is a product (of T3's sub-layers, scaled down), a number of ranks and a speed of the links,
// which are emulated (docs/emulated.md): t/g is the time of a transfer of a rank's share of rows over
// the time to compute it. Each cell has these rows:
//
//   reduce-scatter   product, then reduce-scatter; fused: both at once
//   sub-layer        ... and an all-gather after it, in both cases (T3's metric)
//   chain            ... and a product of what was gathered; fused: all of it at once
//   library's        tsrGemmReduceScatter, which decides by itself; against the unfused pair
//   no stagger, no arrival, no budget     the reduce-scatter without one of fusion's parts
//
// Columns: times in us, medians of the slowest rank; ratio: unfused / fused; ideal: in closed form
// (perf/fused/ideal.h); reached: ideal / fused; model: tsrFusedEstimate's time; read, written: bytes
// of a rank's memory in a launch, counted in the plan.
//
// With --timer the product is a timer, so that ranks without a core of their own keep the schedule.
#include <cblas.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "fused/table.h"

namespace {

using namespace perf::fused;

struct Options {
  std::vector<int> ranks = {2};
  std::vector<double> ratios = {0.25, 0.5, 1, 2, 3};
  std::string products;
  double gflop = 1;
  bool timer = false, host_timer = false, direct = false, drive = false;
  double timer_us = 40'000;
  int chunks = 0;
  std::string json;
  CellOptions cell;
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Fused matrix products against unfused ones, over emulated links.");
  app.add_option("--ranks", o.ranks, "numbers of ranks (2)")->delimiter(',');
  app.add_option("--ratios", o.ratios,
                 "communication to computing, t/g (0.25,0.5,1,2,3); 0: links as they are")
      ->delimiter(',');
  app.add_option("--products", o.products, "only those with this in their name, as gpt-3 or FC-2");
  app.add_option("--gflop", o.gflop, "of a product (1)")->check(CLI::PositiveNumber);
  app.add_flag("--timer", o.timer, "the product is a timer that goes on while tiles are reported");
  app.add_flag("--host-timer", o.host_timer, "the product is a timer that stands still meanwhile");
  app.add_option("--timer-us", o.timer_us, "of a timed product (40000)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--direct", o.direct, "chunks go straight to their owner, not round the ring");
  app.add_flag("--drive", o.drive, "a thread of its own moves data, also with real products");
  app.add_option("--chunks", o.chunks, "per rank; 0: the library chooses (0)")
      ->check(CLI::Range(0, 64));
  app.add_flag("--ablations", o.cell.ablations, "also without stagger, arrival, budget");
  app.add_option("--repetitions", o.cell.repetitions, "(5)")->check(CLI::Range(1, 1000));
  app.add_option("--latency", o.cell.latency_us, "of emulated links, us (10)");
  app.add_option("--json", o.json, "writes the table to this file, too");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return o;
}

Setup setup_of(const Options& o, const Product& product, int ranks) {
  Setup setup;
  setup.product = product;
  setup.ranks = ranks;
  setup.engine = o.timer ? Engine::kDeviceTimer : o.host_timer ? Engine::kHostTimer : Engine::kBlas;
  setup.compute_us = o.timer_us;
  setup.map = o.direct ? tsrMapDirect : tsrMapRing;
  setup.chunks = o.chunks;
  setup.drive = o.drive || o.timer;
  setup.operators = setup.engine == Engine::kBlas;
  return setup;
}

// Rows divide by ranks, chunks and lines of tiles. A timer's product has no shape; its matrix is
// small, so that moving it for real takes little of the links' time.
std::vector<Product> products_of(const Options& o, int ranks) {
  if (o.timer || o.host_timer) return {{"timer", int64_t{ranks} * 64, 256, 16}};
  std::vector<Product> all = sublayers(o.gflop, int64_t{ranks} * 64);
  std::erase_if(all, [&](const Product& p) { return p.name.find(o.products) == p.name.npos; });
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  openblas_set_num_threads(1);
  Table table;
  for (const int ranks : options.ranks) {
    const std::vector<Product> products = products_of(options, ranks);
    size_t number = 0;
    for (const Product& product : products) {
      const Setup setup = setup_of(options, product, ranks);
      options.cell.product_us = calibrate(setup);
      for (const double ratio : options.ratios) {
        std::fprintf(stderr, "%d ranks: cell %zu of %zu, %ld x %ld x %ld\n", ranks, ++number,
                     products.size() * options.ratios.size(), long{product.m}, long{product.n},
                     long{product.k});
        options.cell.ratio = ratio;
        table.add(rows_of(product.name, setup, ratio, measure(setup, options.cell)));
      }
    }
  }
  table.summarize();
  return options.json.empty() || table.save(options.json) ? 0 : 1;
}
