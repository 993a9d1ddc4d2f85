// Fused products against their unfused pairs, side by side, in one process whose threads are ranks.
//
// kFooter below, which --help prints, explains cells, rows and columns.
//
// With --timer the product is a timer, so that ranks without a core of their own keep the schedule.
#include <cblas.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <limits>

#include "command_line/help.h"
#include "fused/operators.h"
#include "fused/table.h"

namespace {

using namespace perf::fused;
using tessera::command_line::between;

struct Options {
  std::vector<int> ranks = {2};
  std::vector<double> ratios = {0.25, 0.5, 1, 2, 3};
  std::string products;
  double gflop = 1;
  bool timer = false, host_timer = false, direct = false, drive = false;
  double timer_us = 40'000;
  int chunks = 0;
  bool no_onto = false;
  bool operators = false;
  std::vector<std::string> types = {"float"};
  std::string json;
  CellOptions cell;
};

constexpr const char* kFooter =
    R"(A cell is a product (T3's sub-layers, scaled down), a number of ranks and a speed of the links,
which are emulated (docs/emulated.md): t/g is the time of a transfer of a rank's share of rows over
the time to compute it. The defaults measure 28 products at five ratios, 140 cells, several
seconds each; "--products FC-2 --ratios 1" measures 7, "--gflop 0.3 --repetitions 3" makes each shorter.

Rows of a cell (what)
  reduce-scatter   product, then reduce-scatter; fused: both at once. Two ranks with --ratios 0
                   add tiles onto each other's output, unless there is --no-onto
  sub-layer        ... and an all-gather after it, in both cases (T3's metric)
  all-reduce       product, then all-reduce; fused: both at once
  chain            ... and a product of what was gathered; fused: all of it at once
  library's        tsrGemmReduceScatter, which decides by itself; against the unfused pair.
                   With --operators: the operator of the row above, as it decides
  no stagger, no arrival, no budget     the reduce-scatter without one of fusion's parts

Columns; times in us, medians of the slowest rank
  n, work          ranks; blas: a real product, timer: a stand-in of the same length
  compute, coll    the product alone, the collectives alone
  unfused, fused   one after the other, both at once; ratio: unfused / fused, the gain
  ideal, reached   fused in closed form (docs/fusion.md), ideal / fused
  model, advice    tsrFusedEstimate's time of the fused one, and whether it advises to fuse
  read, written    bytes of a rank's memory in a launch, counted in the plan)";

void add_modes(CLI::App& app, Options& o) {
  app.add_flag("--ablations", o.cell.ablations, "also without stagger, arrival, budget");
  app.add_option("--repetitions", o.cell.repetitions, "of every measurement; medians are shown")
      ->capture_default_str()
      ->check(between(1, 1000));
  app.add_option("--latency", o.cell.latency_us, "of emulated links, us")->capture_default_str();
  app.add_flag("--operators", o.operators,
               "only the products of tessera/gemm.h: fused, unfused, as the library decides");
  app.add_option("--types", o.types, "of --operators: float, half, bfloat16")
      ->delimiter(',')
      ->default_str("float")
      ->check(CLI::IsMember({"float", "half", "bfloat16"}).description(""));
  app.add_option("--hosts", o.cell.hosts,
                 "processes whose network namespaces ranks live in; needs --ratios 0")
      ->delimiter(',')
      ->default_str("none")
      ->check(between(1, std::numeric_limits<int>::max()));
  app.add_option("--json", o.json, "writes the table to this file, too");
}

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Fused matrix products against unfused ones, over emulated links.");
  tessera::command_line::explain_well(app);
  app.footer(kFooter);
  app.add_option("--ranks", o.ranks, "numbers of ranks")
      ->delimiter(',')
      ->default_str("2")
      ->check(between(2, 64));
  app.add_option("--ratios", o.ratios, "communication to computing, t/g; 0: links as they are")
      ->delimiter(',')
      ->default_str("0.25,0.5,1,2,3")
      ->check(CLI::NonNegativeNumber.description("at least 0"));
  app.add_option("--products", o.products, "only those with this in their name, as gpt-3 or FC-2")
      ->default_str("all");
  app.add_option("--gflop", o.gflop, "of a product")
      ->capture_default_str()
      ->check(CLI::PositiveNumber.description("above 0"));
  app.add_flag("--timer", o.timer, "the product is a timer that goes on while tiles are reported");
  app.add_flag("--host-timer", o.host_timer, "the product is a timer that stands still meanwhile");
  app.add_option("--timer-us", o.timer_us, "of a timed product, us")
      ->default_str("40000")
      ->check(CLI::PositiveNumber.description("above 0"));
  app.add_flag("--direct", o.direct, "chunks go straight to their owner, not round the ring");
  app.add_flag("--drive", o.drive, "a thread of its own moves data, also with real products");
  app.add_flag("--no-onto", o.no_onto, "tiles are never added onto the memory of the peer");
  app.add_option("--chunks", o.chunks, "per rank; 0: the library chooses")
      ->capture_default_str()
      ->check(between(0, 64));
  add_modes(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 2);
  }
  const bool as_they_are = o.ratios == std::vector<double>{0};
  if (!o.cell.hosts.empty() && !as_they_are) {
    std::fprintf(stderr, "--hosts: between hosts links are as they are: --ratios 0\n");
    std::exit(2);
  }
  if (o.operators && (o.timer || o.host_timer)) {
    std::fprintf(stderr, "--operators: timers make no products\n");
    std::exit(2);
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
  setup.onto = !o.no_onto;
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
  if (!options.json.empty() && !Table::check(options.json)) return 1;
  Table table;
  const auto start = std::chrono::steady_clock::now();
  for (const int ranks : options.ranks) {
    const std::vector<Product> products = products_of(options, ranks);
    if (products.empty()) {
      std::fprintf(stderr, "no product has \"%s\" in its name\n", options.products.c_str());
      return 2;
    }
    size_t number = 0;
    for (const Product& product : products) {
      const Setup setup = setup_of(options, product, ranks);
      options.cell.product_us = calibrate(setup);
      for (const double ratio : options.ratios) {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::fprintf(stderr, "%d ranks: cell %zu of %zu after %.0f s, %ld x %ld x %ld\n", ranks,
                     ++number, products.size() * options.ratios.size(), took.count(),
                     long{product.m}, long{product.n}, long{product.k});
        options.cell.ratio = ratio;
        if (!options.operators) {
          table.add(rows_of(product.name, setup, ratio, measure(setup, options.cell)));
          continue;
        }
        for (const std::string& type : options.types)
          table.add(measure_operators(setup, options.cell, type));
      }
    }
  }
  table.summarize();
  return options.json.empty() || table.save(options.json) ? 0 : 1;
}
