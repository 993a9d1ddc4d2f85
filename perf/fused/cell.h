// A cell of the table: one product among some ranks over emulated links of one speed, run in all
// ways in turn, so that what the machine does besides strikes all alike.
// Thread safety: one cell at a time: it sets TESSERA_EMULATE.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fused/ideal.h"
#include "fused/rank.h"

namespace perf::fused {

inline constexpr int kTrials = 10;  // of tessera/gemm.h: it tries both ways first

// What is timed. Unfused ways are stretches of one run: product, then reduce-scatter, ...
enum Timing : size_t {
  kProduct,
  kReduceScatter,
  kAllGather,
  kAllReduce,
  kUnfused,
  kUnfusedSublayer,
  kUnfusedChain,
  kUnfusedAllReduce,
  kFused,
  kFusedSublayer,
  kFusedChain,
  kFusedAllReduce,
  kLibrary,
  kNoStagger,
  kNoArrival,
  kNoBudget,
  kTimings
};

struct CellOptions {
  int repetitions = 5;
  double ratio = 1;        // t / g; 0: links as they are
  double product_us = 0;   // the product's time that the ratio is of
  double latency_us = 10;  // of the emulated links
  bool ablations = false;
  std::vector<int> hosts;  // network namespaces that ranks live in (hosts.h); none: all on one host
};

// Microseconds; medians over repetitions of the slowest rank. 0: not run.
struct Cell {
  std::array<double, kTimings> us{};
  Schedule schedule;  // from the product as it was measured in this cell
  tsrFusedCosts_t scatter{}, chain{}, all_reduce{};  // the model's
  bool library_fuses = false;
};

Cell measure(const Setup& setup, const CellOptions& options);

// Sets TESSERA_EMULATE for the ratio, with elements of so many bytes. A ratio that cannot be ends the
// program.
Schedule emulate(const Setup& setup, const CellOptions& options, size_t element_bytes);

// How long the product takes when all ranks make it at the same time.
double calibrate(const Setup& setup);

}  // namespace perf::fused
